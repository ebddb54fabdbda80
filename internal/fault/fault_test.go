package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestEveryCodeHasItsRow(t *testing.T) {
	for _, c := range Codes() {
		m := c.Means()
		if m.Title == "" || m.HTTP < 400 || m.HTTP > 599 || m.Exit < 1 || m.Exit > 143 {
			t.Errorf("%s: %+v", c, m)
		}
	}
	if Code("unheard-of").Means() != Internal.Means() {
		t.Error("an unknown code must mean internal")
	}
}

func TestAWrappedFaultKeepsItsCodeAndHint(t *testing.T) {
	f := New(NotFound, "addon %s not found", "x").WithHint("see zae addon list").Because(io.EOF)
	got := From(fmt.Errorf("status: %w", f))
	if got.Code != NotFound || got.Hint != "see zae addon list" || got.Error() != "status: addon x not found" {
		t.Errorf("got %+v", got)
	}
	if !errors.Is(got, io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestAnErrorThatIsNoFaultIsInternal(t *testing.T) {
	if got := CodeOf(io.EOF); got != Internal {
		t.Errorf("got %s", got)
	}
	if From(nil) != nil || CodeOf(nil) != "" {
		t.Error("nil is no fault")
	}
}
