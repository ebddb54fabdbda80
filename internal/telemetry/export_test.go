package telemetry

import "context"

// Flush sends what is left without an end.
func Flush(ctx context.Context, t *Tracing) error { return t.provider.ForceFlush(ctx) }
