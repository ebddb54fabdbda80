package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"zaentrum.io/zae/internal/fault"
)

const (
	// maxSends is how often a write is sent whose answer is lost.
	maxSends = 3
	// resend is the pause before a write is sent again, doubled each time.
	resend = 250 * time.Millisecond
)

// lost is an error after which nobody knows whether a write has happened.
type lost struct{ error }

func (l *lost) Unwrap() error { return l.error }

// lostAnswer marks what is told of a call without an answer as lost, unless nothing was sent.
func lostAnswer(err, told error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return told
	}
	return &lost{told}
}

// once sends a request. A write whose answer is lost is sent again under the same key, within the time of one call, so that
// it is answered as it was the first time, or happens then.
func (c *Client) once(ctx context.Context, r request) (json.RawMessage, http.Header, error) {
	if r.method != http.MethodPost && r.method != http.MethodPatch {
		return c.send(ctx, r)
	}
	r.key = c.o.NewKey()
	start := time.Now()
	for sent := 1; ; sent++ {
		raw, header, err := c.send(ctx, r)
		_, unknown := errors.AsType[*lost](err)
		if busy := sent > 1 && fault.CodeOf(err) == fault.InFlight; !unknown && !busy || sent == maxSends || ctx.Err() != nil {
			return raw, header, err
		}
		pause := resend << sent
		if time.Since(start)+pause > c.o.Timeout || sleep(ctx, pause) != nil {
			return nil, nil, err
		}
	}
}
