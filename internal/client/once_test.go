package client

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

// keys is what a server saw of the keys of writes.
type keys struct {
	mu  sync.Mutex
	all []string
}

// answers is a client of a server that gives one answer after the other.
func (k *keys) answers(t *testing.T, answers ...http.HandlerFunc) *Client {
	t.Helper()
	n := 0
	return at(t, func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		k.all = append(k.all, r.Header.Get("Idempotency-Key"))
		answer := answers[min(n, len(answers)-1)]
		n++
		k.mu.Unlock()
		answer(w, r)
	}, func(o *Options) {
		made := 0
		o.NewKey = func() string { made++; return fmt.Sprintf("key-%d", made) }
	})
}

func (k *keys) want(t *testing.T, keys ...string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.Join(k.all, " ") != strings.Join(keys, " ") {
		t.Errorf("keys %v, want %v", k.all, keys)
	}
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const accepted = `{"name":"example","generation":7,"observedGeneration":1,"chart":{"ref":"oci://x/y"}}`

func TestAWriteWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]http.HandlerFunc{
		"nothing": cutOff,
		"half of an answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "999")
			send(202, "application/json", `{"na`)(w, r)
		},
		"a gateway's word": send(502, "text/html", "<html>bad gateway"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k keys
			c := k.answers(t, first, send(409, apitype.ProblemType, `{"status":409,"code":"in-flight"}`), send(202, "application/json", accepted))
			got, err := c.Create(t.Context(), apitype.CreateRequest{Chart: "oci://x/y"})
			if err != nil || got.Doc.Generation != 7 {
				t.Errorf("got %+v, %v", got, err)
			}
			k.want(t, "key-1", "key-1", "key-1")
		})
	}
}

func TestEachWriteHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	var k keys
	c := k.answers(t, send(202, "application/json", accepted))
	for range 2 {
		if _, err := c.Patch(t.Context(), "example", apitype.PatchRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(t.Context(), "example"); err != nil {
		t.Fatal(err)
	}
	k.want(t, "key-1", "key-2", "")
}

func TestAWriteThatIsAnsweredIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		code   fault.Code
	}{
		"refused":    {send(409, apitype.ProblemType, `{"status":409,"code":"no-current-plan"}`), fault.NoPlan},
		"broken":     {send(500, apitype.ProblemType, `{"status":500,"code":"internal"}`), fault.Internal},
		"busy":       {send(503, apitype.ProblemType, `{"status":503,"code":"busy"}`), fault.Busy},
		"in flight":  {send(409, apitype.ProblemType, `{"status":409,"code":"in-flight"}`), fault.InFlight},
		"a page":     {send(200, "text/html", "<html>sign in"), fault.Unreachable},
		"a redirect": {send(302, "text/html", ""), fault.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k keys
			_, err := k.answers(t, tc.answer).Install(t.Context(), "example", "")
			if fault.CodeOf(err) != tc.code {
				t.Errorf("got %v", err)
			}
			k.want(t, "key-1")
		})
	}
}

func TestALostAnswerIsGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	var k keys
	start := time.Now()
	_, err := k.answers(t, cutOff).Install(t.Context(), "example", "")
	wantFault(t, err, fault.Unreachable)
	k.want(t, "key-1", "key-1", "key-1")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}
