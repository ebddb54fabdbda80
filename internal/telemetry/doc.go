// Package telemetry is what the operator and the API tell of themselves to those who run them: metrics for Prometheus, spans
// for OpenTelemetry, and log lines that look alike. It is the only place that knows those systems; what they measure hands
// over counts, times and names.
//
// It keeps no state of addons: what a metric says of them is read from the caches when it is asked for. Nothing of
// OpenTelemetry is set up unless an endpoint is named. No value of an input or of a Secret, and no text that may quote one,
// reaches a metric, a span or a log line.
package telemetry
