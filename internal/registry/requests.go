package registry

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Request is an attempt at a write that is to happen once, however often it is sent.
type Request struct {
	// ID stands for the caller and the key that they gave the write.
	ID string
	// Fingerprint stands for what is asked for, secret values left out.
	Fingerprint string
	// Attempt tells this attempt from every other one.
	Attempt string
	// Suffix is kept with the first attempt: what the write makes is named with it, in every attempt.
	Suffix string
	// At is now, BusyUntil when the attempt has surely ended, and Expires when the request is forgotten.
	At, BusyUntil, Expires time.Time
}

// Standing is how a request stands when it is sent.
type Standing int

// How a request stands.
const (
	// RequestNew has not been sent before.
	RequestNew Standing = iota
	// RequestAgain has been sent before, and nobody knows how far that attempt came.
	RequestAgain
	// RequestBusy is being worked on.
	RequestBusy
	// RequestDone has been answered.
	RequestDone
	// RequestOther has been sent before and asked for something else.
	RequestOther
)

// Begun is what is known of a request when an attempt begins.
type Begun struct {
	Standing Standing
	// Suffix is the first attempt's; with RequestNew and RequestAgain.
	Suffix string
	// Answer is what was answered; with RequestDone.
	Answer []byte
}

func (s *store) BeginRequest(ctx context.Context, r Request) (b Begun, _ error) {
	now := r.At.UnixMilli()
	return b, s.change(ctx, func(ctx context.Context, tx querier) error {
		b = Begun{Suffix: r.Suffix}
		if _, err := tx.ExecContext(ctx, "DELETE FROM requests WHERE expires <= $1", now); err != nil {
			return err
		}
		var fingerprint, attempt, suffix, answer string
		var busy int64
		err := tx.QueryRowContext(ctx, "SELECT fingerprint, attempt, suffix, busy_until, answer FROM requests WHERE id = $1", r.ID).
			Scan(&fingerprint, &attempt, &suffix, &busy, &answer)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err := tx.ExecContext(ctx, `INSERT INTO requests (id, fingerprint, attempt, suffix, busy_until, expires)
				VALUES ($1, $2, $3, $4, $5, $6)`, r.ID, r.Fingerprint, r.Attempt, r.Suffix, r.BusyUntil.UnixMilli(), r.Expires.UnixMilli())
			return err
		case err != nil:
			return err
		case attempt == r.Attempt:
			return nil // this very call, done over because nobody knew whether it had happened
		case fingerprint != r.Fingerprint:
			b = Begun{Standing: RequestOther}
			return nil
		case answer != "":
			b = Begun{Standing: RequestDone, Answer: []byte(answer)}
			return nil
		case busy > now:
			b = Begun{Standing: RequestBusy}
			return nil
		}
		b = Begun{Standing: RequestAgain, Suffix: suffix}
		_, err = tx.ExecContext(ctx, "UPDATE requests SET attempt = $1, busy_until = $2 WHERE id = $3", r.Attempt, r.BusyUntil.UnixMilli(), r.ID)
		return err
	})
}

func (s *store) AnswerRequest(ctx context.Context, id, attempt string, answer []byte) error {
	return s.onRequest(ctx, "UPDATE requests SET answer = $1 WHERE id = $2 AND attempt = $3", string(answer), id, attempt)
}

func (s *store) LeaveRequest(ctx context.Context, id, attempt string) error {
	return s.onRequest(ctx, "UPDATE requests SET busy_until = 0 WHERE id = $1 AND attempt = $2", id, attempt)
}

func (s *store) ForgetRequest(ctx context.Context, id, attempt string) error {
	return s.onRequest(ctx, "DELETE FROM requests WHERE id = $1 AND attempt = $2", id, attempt)
}

func (s *store) onRequest(ctx context.Context, statement string, args ...any) error {
	return s.change(ctx, func(ctx context.Context, tx querier) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}
