package portal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"zaentrum.io/zae/internal/telemetry"
)

// idleConn is a connection to an app on which something moves, one way or the other, at least every idle.
type idleConn struct {
	net.Conn
	idle time.Duration
	last atomic.Int64 // when something moved, in nanoseconds
}

func (c *idleConn) touch() time.Time {
	now := time.Now()
	c.last.Store(now.UnixNano())
	return now
}

func (c *idleConn) Read(p []byte) (int, error) {
	until := c.touch().Add(c.idle)
	for {
		if err := c.SetReadDeadline(until); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.touch()
		}
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			// What is written counts too: an upload takes its time, and is answered when it is over.
			if until = time.Unix(0, c.last.Load()).Add(c.idle); time.Now().Before(until) {
				continue
			}
		}
		return n, err
	}
}

func (c *idleConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.touch().Add(c.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// pacedBody is a caller's body of which a piece comes at least every while. The server's own limit is for bodies that are
// small.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	each    time.Duration
}

func (b *pacedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(b.each)) // a connection that cannot have one has ended
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

// done takes the limit away: from here on, the server reads only to see that the caller has gone.
func (b *pacedBody) done() { _ = b.control.SetReadDeadline(time.Time{}) }

// airlock keeps what an app answers away from the caller's writer until it is complete and known to be fit: interim
// answers, whose headers the reverse proxy would put among ours and then clear with them, and trailers go no further.
type airlock struct {
	w       http.ResponseWriter
	control *http.ResponseController
	each    time.Duration
	header  http.Header
	begun   bool
	// interim is how many interim answers there were; when they are too many, flood is called.
	interim int
	flood   func()
}

// maxInterim is how many interim answers an app may give to one call. The transport sets no limit when somebody listens,
// as the reverse proxy does.
const maxInterim = 16

func (a *airlock) Header() http.Header { return a.header }

func (a *airlock) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		if a.interim++; a.interim > maxInterim {
			a.flood()
		}
		return
	}
	if a.begun {
		return
	}
	a.begun = true
	maps.Copy(a.w.Header(), a.header)
	_ = a.control.SetWriteDeadline(time.Now().Add(a.each))
	a.w.WriteHeader(status)
}

func (a *airlock) Write(p []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(a.each))
	return a.w.Write(p)
}

// FlushError sends what is there; the reverse proxy calls it through an http.ResponseController.
func (a *airlock) FlushError() error {
	if !a.begun {
		return nil
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(a.each))
	return a.control.Flush()
}

// done leaves the connection with limits for what the server itself does when the call is over.
func (a *airlock) done() {
	soon := time.Now().Add(a.each)
	_ = a.control.SetWriteDeadline(soon)
	_ = a.control.SetReadDeadline(soon)
}

// Hijack hands the caller's connection over to a WebSocket.
func (a *airlock) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := a.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.begun = true
	if o, ok := a.w.(*observer); ok {
		o.status = http.StatusSwitchingProtocols
	}
	return &pacedConn{Conn: conn, each: a.each}, buffered, nil
}

// pacedConn is a caller's connection that takes a piece at least every while.
type pacedConn struct {
	net.Conn
	each time.Duration
}

func (c *pacedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.each)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// tunnels are the answers that go on until somebody ends them.
type tunnels struct {
	mu   sync.Mutex
	over bool
	open map[*tunnel]bool
}

// tunnel is one of them.
type tunnel struct {
	of     *tunnels
	cancel context.CancelFunc
	timer  *time.Timer
	told   atomic.Bool
}

// begin is a new tunnel, which is stopped with cancel; nil when there are to be no more.
func (s *tunnels) begin(cancel context.CancelFunc) *tunnel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	if s.open == nil {
		s.open = map[*tunnel]bool{}
	}
	one := &tunnel{of: s, cancel: cancel}
	s.open[one] = true
	return one
}

// end stops all tunnels, and those that would begin.
func (s *tunnels) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for one := range s.open {
		one.stop()
	}
}

// stopIn stops the tunnel after a while.
func (s *tunnel) stopIn(d time.Duration) { s.timer = time.AfterFunc(d, s.stop) }

func (s *tunnel) stop() {
	s.told.Store(true)
	s.cancel()
}

func (s *tunnel) leave() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.open, s)
}

// streamBody is the body of an answer that goes on. When it is stopped it ends as if it were complete.
type streamBody struct {
	io.ReadCloser
	tunnel *tunnel
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.tunnel.told.Load() {
		err = io.EOF
	}
	return n, err
}

func (b *streamBody) Close() error {
	b.tunnel.leave()
	return b.ReadCloser.Close()
}

// notedBody notes when an app breaks off.
type notedBody struct {
	io.ReadCloser
	pass *passage
	ctx  context.Context
}

func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() == nil {
		b.pass.result = telemetry.ProxyFailed
	}
	return n, err
}

// socketBody is the connection to an app that has become a WebSocket.
type socketBody struct {
	io.ReadWriteCloser
	tunnel *tunnel
}

func (b *socketBody) Close() error {
	b.tunnel.leave()
	return b.ReadWriteCloser.Close()
}

// buffers are those that answers are copied through.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) {
	if len(p) == bufferSize {
		b.pool.Put((*[bufferSize]byte)(p))
	}
}
