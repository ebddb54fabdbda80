package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

const (
	// firstWord is how long a stream may take to say anything: a proxy that holds back what is not complete says nothing
	// at all.
	firstWord = 10 * time.Second
	// maxEvent is the largest event that is read.
	maxEvent = maxAnswer
	// maxPause is the longest pause before a stream is opened again.
	maxPause = 30 * time.Second
	// maxBroken is how many streams in a row may end without an event before the addon is read in the plain way.
	maxBroken = 3
)

// Watch calls see with the addon as it is, and again each time that it changes, until see is done or fails, the addon
// is gone (fault.NotFound) or ctx ends. It reads the server's event stream, goes on where a stream broke off, and reads
// the addon every Options.Poll where the server, or a proxy before it, has no stream. What happened between two
// readings or streams is not shown: see always gets what is. A call that fails for a passing reason is made again.
func (c *Client) Watch(ctx context.Context, name string, see func(*Answer[apitype.AddonChart]) (done bool, err error)) error {
	w := &watching{c: c, name: name, see: see}
	pause, broken := time.Duration(0), 0
	for broken < maxBroken {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		news, end, err := w.stream(ctx)
		switch {
		case errors.Is(err, errStop):
			return w.result
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errNoStream):
			return w.poll(ctx)
		case err != nil && !passing(err):
			return err
		}
		if news || end == apitype.EndShutdown {
			pause, broken = 0, 0
		} else {
			broken++
		}
		pause = min(max(2*pause, time.Second/2), maxPause)
	}
	return w.poll(ctx)
}

// errStop ends a watch with its result; errNoStream says that there is no stream to be had.
var (
	errStop     = errors.New("enough seen")
	errNoStream = errors.New("no event stream")
)

// watching is one Watch.
type watching struct {
	c      *Client
	name   string
	see    func(*Answer[apitype.AddonChart]) (bool, error)
	lastID string
	result error
}

// stop ends the watch.
func (w *watching) stop(err error) error {
	w.result = err
	return errStop
}

func (w *watching) gone() error {
	return w.stop(fault.New(fault.NotFound, "addon %s was removed", w.name))
}

// show hands an addon to the caller.
func (w *watching) show(a *Answer[apitype.AddonChart]) error {
	if done, err := w.see(a); done || err != nil {
		return w.stop(err)
	}
	return nil
}

// poll reads the addon again and again.
func (w *watching) poll(ctx context.Context) error {
	failed := 0
	for {
		got, err := w.c.Get(ctx, w.name)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failed = 0
			if w.show(got) != nil {
				return w.result
			}
		case !passing(err) || failed >= maxBroken:
			return err
		default:
			failed++
		}
		if err := sleep(ctx, w.c.o.Poll); err != nil {
			return err
		}
	}
}

// stream reads one stream to its end. It tells whether there was an event, and why the server says that it ended.
func (w *watching) stream(ctx context.Context) (news bool, end apitype.EndReason, _ error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Silence ends it: every word sets the time anew.
	silent := w.c.foreign("said nothing for too long")
	watchdog := time.AfterFunc(min(firstWord, w.c.o.Silence), func() { cancel(silent) })
	defer watchdog.Stop()
	r := request{method: http.MethodGet, path: addonPath(w.name) + "/events", accept: apitype.EventStreamType, lastEvent: w.lastID}
	req, bearer, err := w.c.prepare(ctx, limited, r)
	if err != nil {
		return false, "", err
	}
	start := time.Now()
	res, err := w.c.http.Do(req)
	if err != nil {
		w.c.debug(req, "no answer", start)
		if errors.Is(context.Cause(limited), silent) {
			return false, "", errNoStream
		}
		return false, "", w.c.broken(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	w.c.debug(req, strconv.Itoa(res.StatusCode), start)
	if res.StatusCode != http.StatusOK || mediaType(res) != apitype.EventStreamType {
		return false, "", w.refused(ctx, r, res, bearer)
	}
	said := false
	words := &alarmed{Reader: res.Body, heard: func() { said = true; watchdog.Reset(w.c.o.Silence) }}
	err = readEvents(words, func(kind, id string, data []byte) error {
		switch kind {
		case apitype.EventAddon:
			a := &Answer[apitype.AddonChart]{Raw: data}
			if err := decode(data, &a.Doc); err != nil {
				return w.c.foreign("sent an event of another shape").Because(err)
			}
			w.lastID, news = id, true
			return w.show(a)
		case apitype.EventDeleted:
			return w.gone()
		case apitype.EventEnd:
			var last apitype.StreamEnd
			if decode(data, &last) == nil {
				end = last.Reason
			}
		}
		return nil
	})
	if !said && errors.Is(context.Cause(limited), silent) {
		return false, "", errNoStream
	}
	if errors.Is(err, errStop) || fault.CodeOf(err) == fault.Unreachable {
		return news, end, err
	}
	return news, end, nil // it broke off, as streams do
}

// refused is why there is no stream. An older server knows no such address, which looks like an addon that is not there.
func (w *watching) refused(ctx context.Context, r request, res *http.Response, bearer string) error {
	_, err := w.c.read(r, res)
	if err == nil || res.StatusCode < 400 {
		return errNoStream
	}
	err = withoutToken(err, bearer)
	switch fault.CodeOf(err) {
	case fault.NotFound:
		got, err := w.c.Get(ctx, w.name)
		if err != nil {
			if w.lastID != "" && fault.CodeOf(err) == fault.NotFound {
				return w.gone()
			}
			return err
		}
		if err := w.show(got); err != nil {
			return err
		}
		return errNoStream
	case fault.RateLimited, fault.Busy, fault.Malformed: // as many as there may be, or another method only
		return errNoStream
	}
	return err
}

// alarmed tells when something was read.
type alarmed struct {
	io.Reader
	heard func()
}

func (a *alarmed) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.heard()
	}
	return n, err
}

// readEvents reads server-sent events until the stream ends. An event that is not complete is none.
func readEvents(from io.Reader, take func(kind, id string, data []byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	var kind, id string
	var data []byte
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if len(data) > 0 {
				if err := take(kind, id, data); err != nil {
					return err
				}
			}
			kind, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			kind = value
		case "id":
			if !strings.ContainsRune(value, 0) && len(value) <= 200 {
				id = value
			}
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			if len(data)+len(value) > maxEvent {
				return bufio.ErrTooLong
			}
			data = append(data, value...)
		}
	}
	return lines.Err()
}

// passing tells whether the same call may succeed a little later.
func passing(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unreachable, fault.Cluster, fault.RateLimited, fault.Busy, fault.SignIn:
		return true
	default:
		return false
	}
}

func sleep(ctx context.Context, pause time.Duration) error {
	if pause <= 0 && ctx.Err() == nil {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
