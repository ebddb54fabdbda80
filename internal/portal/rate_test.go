package portal_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

func TestWritesOfACallerAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.WritesPerSecond, o.WriteBurst = 0.5, 3 })
	for range 3 { // what is refused for another reason counts too
		b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, `{"chart":"nonsense"}`), http.StatusBadRequest, "invalid")
	}
	for method, path := range map[string]string{
		http.MethodPost: apitype.PathAddonCharts, http.MethodPatch: chartPath("example"), http.MethodDelete: chartPath("example"),
	} {
		b.wire.take()
		r := b.do(method, path, `{"chart":"`+exampleRef+`","version":"1.2.0","secretValues":{"a":"`+canary+`"}}`)
		p := b.problem(r, http.StatusTooManyRequests, "rate-limited")
		if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 || after > 2 {
			t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
		}
		if p.Hint == "" || len(b.wire.take()) > 0 {
			t.Errorf("%s: got %s", method, r)
		}
	}
	var all apitype.Addons
	b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &all) // reading is free
	other := b.issuer.token(map[string]any{"sub": "somebody else"})
	b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, `{"chart":"nonsense"}`, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+other)
	}), http.StatusBadRequest, "invalid")
	b.eventually("there is room again", func() error {
		if r := b.do(http.MethodPost, apitype.PathAddonCharts, `{"chart":"nonsense"}`); r.status != http.StatusBadRequest {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
}

// TestABodyThatNeverEnds holds that a caller who stops sending does not hold on to the server.
func TestABodyThatNeverEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	front := httptest.NewUnstartedServer(nil)
	front.Config = b.portal.HTTPServer("")
	front.Config.ReadTimeout = 300 * time.Millisecond
	front.Start()
	defer front.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", front.Listener.Addr().String())
	b.must(err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		apitype.PathAddonCharts, b.token)
	b.must(err)
	b.must(conn.SetReadDeadline(time.Now().Add(20 * time.Second)))
	got, err := io.ReadAll(conn)
	b.must(err)
	if text := string(got); !strings.Contains(text, " 400 ") || !strings.Contains(text, `"code":"malformed"`) {
		t.Errorf("got %s", text)
	}
}
