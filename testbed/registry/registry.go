// Package registry is an OCI registry for tests, and what is needed to put a Helm chart into one: a deterministic
// archive and its push. The registry keeps everything in memory and lets everybody in; it must never be more than a
// test's.
package registry

import (
	"context"
	"io"
	"log"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"

	"zaentrum.io/zae/testbed/internal/server"
)

// Options of a registry. The zero value is a quiet one on a free port.
type Options struct {
	// Addr is the loopback address to listen on; empty takes a free port.
	Addr string
	// Log gets one line per request. May be nil.
	Log io.Writer
	// Wrap is put around every request when set: for tests that count, delay or break them.
	Wrap func(http.Handler) http.Handler
}

// Server is a running registry. Stopped and started again, it has the same address and content.
type Server struct{ *server.Server }

// Serve starts a registry; plain http. It runs until its Stop or Kill, or until ctx is done.
func Serve(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	h := registry.New(registry.Logger(log.New(o.Log, "", log.LstdFlags)))
	if o.Wrap != nil {
		h = o.Wrap(h)
	}
	s, err := server.Listen(o.Addr, h)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = s.Kill() }) // it is gone either way, and nobody waits for it
	return &Server{s}, nil
}
