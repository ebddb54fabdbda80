package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

func quick(o *Options) { o.Poll, o.Silence = 10*time.Millisecond, 300*time.Millisecond }

// eventServer answers with streams, one script after the other, and with the addon.
func eventServer(t *testing.T, scripts ...http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	var opened, read atomic.Int32
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			send(200, "application/json", fmt.Sprintf(`{"name":"example","generation":%d}`, 100+read.Add(1)))(w, r)
			return
		}
		n := int(opened.Add(1)) - 1
		scripts[min(n, len(scripts)-1)](w, r)
	}, quick)
	return c, &read
}

func events(text string) http.HandlerFunc { return send(200, "text/event-stream", text) }

// generations are those that a watch shows until the last one wanted.
func generations(t *testing.T, c *Client, last int64) ([]int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all []int64
	err := c.Watch(ctx, "example", func(a *Answer[apitype.AddonChart]) (bool, error) {
		all = append(all, a.Doc.Generation)
		return a.Doc.Generation == last, nil
	})
	return all, err
}

func addonEvent(id string, generation int) string {
	return fmt.Sprintf("event: addon\nid: %s\ndata: {\"name\":\"example\",\"generation\":%d}\n\n", id, generation)
}

func TestWatchReadsAStreamAndGoesOn(t *testing.T) {
	t.Parallel()
	var resumed atomic.Value
	c, read := eventServer(t,
		events("retry: 1000\n\n: hello\n\n"+addonEvent("a", 1)+addonEvent("b", 2)+"event: addon\ndata: {\"gen"),
		func(w http.ResponseWriter, r *http.Request) {
			resumed.Store(r.Header.Get("Last-Event-ID") + " " + r.Header.Get("Authorization"))
			events("event: unknown\ndata: x\n\nevent: end\ndata: {\"reason\":\"shutdown\"}\n\n")(w, r)
		},
		events(strings.ReplaceAll(addonEvent("c", 3), "\n", "\r\n")),
	)
	got, err := generations(t, c, 3)
	if err != nil || fmt.Sprint(got) != "[1 2 3]" || resumed.Load() != "b Bearer "+token || read.Load() != 0 {
		t.Errorf("got %v, %v, resumed with %v, read %d times", got, err, resumed.Load(), read.Load())
	}
}

func TestWatchTellsThatAnAddonIsGone(t *testing.T) {
	t.Parallel()
	c, _ := eventServer(t, events(addonEvent("a", 1)+"event: deleted\ndata: {\"name\":\"example\"}\n\n"))
	_, err := generations(t, c, 9)
	wantFault(t, err, fault.NotFound, "example was removed")
}

func TestWatchEndsWithWhatSeeSays(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	c, _ := eventServer(t, events(addonEvent("a", 1)))
	err := c.Watch(t.Context(), "example", func(*Answer[apitype.AddonChart]) (bool, error) { return false, enough })
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestWatchPollsWhereThereIsNoStream(t *testing.T) {
	t.Parallel()
	silence := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, stream := range map[string]http.HandlerFunc{
		"an older server":             send(404, apitype.ProblemType, `{"status":404,"code":"not-found","detail":"there is nothing at this address"}`),
		"too many streams":            send(429, apitype.ProblemType, `{"status":429,"code":"rate-limited"}`),
		"a busy server":               send(503, apitype.ProblemType, `{"status":503,"code":"busy"}`),
		"another document":            send(200, "application/json", `{}`),
		"a proxy that buffers":        silence,
		"a proxy that holds headers":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"streams that end at once":    events(": hello\n\n"),
		"streams that are no streams": events("event: addon\ndata: nonsense\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, read := eventServer(t, stream)
			got, err := generations(t, c, 103)
			if err != nil || fmt.Sprint(got) != "[101 102 103]" || read.Load() != 3 {
				t.Errorf("got %v, %v, read %d times", got, err, read.Load())
			}
		})
	}
}

func TestWatchGivesUpWhatCannotPass(t *testing.T) {
	t.Parallel()
	c, read := eventServer(t, send(403, apitype.ProblemType, `{"status":403,"code":"forbidden","detail":"no admin"}`))
	_, err := generations(t, c, 9)
	wantFault(t, err, fault.Forbidden, "no admin")
	if read.Load() != 0 {
		t.Errorf("read %d times", read.Load())
	}
	gone := at(t, send(404, apitype.ProblemType, `{"status":404,"code":"not-found","detail":"there is no chart addon example"}`), quick)
	_, err = generations(t, gone, 9)
	wantFault(t, err, fault.NotFound, "no chart addon")
}

func TestWatchNoticesAStreamThatFallsSilent(t *testing.T) {
	t.Parallel()
	c, _ := eventServer(t, func(w http.ResponseWriter, r *http.Request) {
		events(addonEvent("a", 1))(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, events(addonEvent("b", 2)))
	if got, err := generations(t, c, 2); err != nil || fmt.Sprint(got) != "[1 2]" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	c, _ := eventServer(t, func(w http.ResponseWriter, r *http.Request) {
		events(addonEvent("a", 1))(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	err := c.Watch(ctx, "example", func(*Answer[apitype.AddonChart]) (bool, error) {
		cancel(why)
		return false, nil
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
