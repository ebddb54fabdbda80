package registry_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"zaentrum.io/zae/internal/registry"
)

// sent is an attempt at a request, minutes after noon.
func sent(id, asked, attempt string, minutes int) registry.Request {
	at := noon().Add(time.Duration(minutes) * time.Minute)
	return registry.Request{
		ID: id, Fingerprint: asked, Attempt: attempt, Suffix: "suffix-" + attempt,
		At: at, BusyUntil: at.Add(30 * time.Second), Expires: at.Add(24 * time.Hour),
	}
}

func TestARequestHappensOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s registry.Store) {
		begin := func(r registry.Request, want registry.Begun) {
			t.Helper()
			got, err := s.BeginRequest(t.Context(), r)
			if err != nil || got.Standing != want.Standing || got.Suffix != want.Suffix || string(got.Answer) != string(want.Answer) {
				t.Fatalf("got %+v, %v, want %+v", got, err, want)
			}
		}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		begin(sent("a", "x", "1", 0), registry.Begun{Standing: registry.RequestNew, Suffix: "suffix-1"})
		begin(sent("a", "x", "1", 0), registry.Begun{Standing: registry.RequestNew, Suffix: "suffix-1"}) // the same attempt
		begin(sent("a", "x", "2", 0), registry.Begun{Standing: registry.RequestBusy})
		begin(sent("a", "y", "3", 0), registry.Begun{Standing: registry.RequestOther})
		begin(sent("b", "y", "4", 0), registry.Begun{Standing: registry.RequestNew, Suffix: "suffix-4"})
		// One that was killed is followed by another, which goes on with its names.
		begin(sent("a", "x", "5", 1), registry.Begun{Standing: registry.RequestAgain, Suffix: "suffix-1"})
		// What the first one says then counts no more.
		do(s.AnswerRequest(ctx, "a", "1", []byte("late")))
		do(s.ForgetRequest(ctx, "a", "1"))
		begin(sent("a", "x", "6", 1), registry.Begun{Standing: registry.RequestBusy})
		do(s.LeaveRequest(ctx, "a", "5"))
		begin(sent("a", "x", "6", 1), registry.Begun{Standing: registry.RequestAgain, Suffix: "suffix-1"})
		do(s.AnswerRequest(ctx, "a", "6", []byte(`{"a":1}`)))
		begin(sent("a", "x", "7", 2), registry.Begun{Standing: registry.RequestDone, Answer: []byte(`{"a":1}`)})
		begin(sent("a", "y", "8", 2), registry.Begun{Standing: registry.RequestOther})
		do(s.ForgetRequest(ctx, "b", "4"))
		begin(sent("b", "z", "9", 2), registry.Begun{Standing: registry.RequestNew, Suffix: "suffix-9"})
		// After a day it is another request.
		begin(sent("a", "y", "10", 24*60), registry.Begun{Standing: registry.RequestNew, Suffix: "suffix-10"})
	})
}

func TestOneOfManyAttemptsBegins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s registry.Store) {
		var (
			all sync.WaitGroup
			mu  sync.Mutex
			got = map[registry.Standing]int{}
		)
		for i := range 12 {
			all.Go(func() {
				b, err := s.BeginRequest(context.WithoutCancel(t.Context()), sent("a", "x", fmt.Sprint(i), 0))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				got[b.Standing]++
			})
		}
		all.Wait()
		if got[registry.RequestNew] != 1 || got[registry.RequestBusy] != 11 {
			t.Errorf("got %v", got)
		}
	})
}
