// Package server runs an HTTP handler on a loopback port that stays the same over restarts, so that tests can take a
// part away, bring it back, or let it hang. It never listens on anything but a loopback address.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is one handler on one address. Its methods may be called from several goroutines.
type Server struct {
	handler http.Handler
	addr    string
	tls     *tls.Config // nil: plain http

	mu      sync.Mutex
	http    *http.Server  // nil while stopped
	served  chan struct{} // closed when Serve returned
	resumed chan struct{} // nil unless paused; closed by Resume
}

// Listen starts serving h on addr, which must be a loopback address; port 0 takes a free one.
func Listen(addr string, h http.Handler) (*Server, error) { return listen(addr, h, nil) }

// ListenTLS is Listen with a certificate, and so with HTTP/2.
func ListenTLS(addr string, h http.Handler, certificate tls.Certificate) (*Server, error) {
	return listen(addr, h, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
}

func listen(addr string, h http.Handler, config *tls.Config) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: not a loopback address", addr)
	}
	s := &Server{handler: h, addr: addr, tls: config}
	if err := s.Start(); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr is the host:port the server has, running or not.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Running says whether the server accepts connections.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http != nil
}

// Start serves again after Stop or Kill, on the same address. A running server is left alone.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil {
		return nil
	}
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr = ln.Addr().String()
	h := &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	serve := h.Serve
	if s.tls != nil {
		h.TLSConfig = s.tls.Clone()
		h.ErrorLog = log.New(io.Discard, "", 0) // a client that was killed ends no handshake
		serve = func(ln net.Listener) error { return h.ServeTLS(ln, "", "") }
	}
	s.http, s.served = h, make(chan struct{})
	go func(served chan struct{}) {
		defer close(served)
		_ = serve(ln) // returns ErrServerClosed; an accept error shows as refused connections
	}(s.served)
	return nil
}

// Stop ends the server: it waits for running requests up to grace, then cuts them off.
func (s *Server) Stop(grace time.Duration) error {
	h, served := s.take()
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := h.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close()
	}
	<-served
	return err
}

// Kill ends the server at once, with every connection.
func (s *Server) Kill() error {
	h, served := s.take()
	if h == nil {
		return nil
	}
	err := h.Close()
	<-served
	return err
}

// Pause lets every request from now on hang until Resume, Stop or Kill.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = make(chan struct{})
	}
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resume()
}

func (s *Server) resume() {
	if s.resumed != nil {
		close(s.resumed)
		s.resumed = nil
	}
}

func (s *Server) take() (*http.Server, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, served := s.http, s.served
	s.http, s.served = nil, nil
	s.resume()
	return h, served
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	paused := s.resumed
	s.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-r.Context().Done():
			return
		}
	}
	s.handler.ServeHTTP(w, r)
}
