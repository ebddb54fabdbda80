package registry

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Outcome is what came of a write.
type Outcome string

// What comes of writes.
const (
	// AuditBegun is a write that is under way, or of which nobody knows how far it came: the process ended.
	AuditBegun Outcome = "begun"
	// AuditDone was done.
	AuditDone Outcome = "done"
	// AuditReplayed was done before, and answered again.
	AuditReplayed Outcome = "replayed"
	// AuditRefused was refused, and changed nothing.
	AuditRefused Outcome = "refused"
	// AuditForbidden was asked for by somebody who may not.
	AuditForbidden Outcome = "forbidden"
	// AuditDryRun was to write nothing.
	AuditDryRun Outcome = "dry-run"
	// AuditFailed failed, and may have been done in part.
	AuditFailed Outcome = "failed"
)

// AuditEntry is one write that somebody asked for.
type AuditEntry struct {
	// ID is the entry's place: later entries have higher ones. It is the moment in microseconds, and fits into the integers of
	// JSON's readers.
	ID int64
	At time.Time
	// Subject and Client are who asked, as the token says, and Username what people call them.
	Subject, Client, Username string
	// Verb is the call's name, and Addon what it was about; empty when that was never known.
	Verb, Addon string
	Outcome     Outcome
	// Code is the fault's; empty when there was none. Status is the HTTP status of the answer, 0 while there is none.
	Code   string
	Status int
	Trace  string
	// Changes is JSON: what was there before and after.
	Changes []byte
}

// AuditQuery selects entries.
type AuditQuery struct {
	// Addon, when set, is the one that entries are about.
	Addon string
	// Before, when set, is the id that entries come before.
	Before int64
	// Limit is how many entries there are at most.
	Limit int
}

func (s *store) AddAudit(ctx context.Context, e AuditEntry) (int64, error) {
	id, first := int64(0), true
	err := s.note(ctx, func(ctx context.Context, tx querier) error {
		s.mu.Lock()
		id = max(e.At.UnixMicro(), s.lastAudit+1)
		if !first { // another replica has written in the same microsecond, and may do so again
			id += rand.Int64N(1000)
		}
		s.lastAudit, first = id, false
		s.mu.Unlock()
		_, err := tx.ExecContext(ctx, `INSERT INTO audit
			(id, at, subject, client, username, verb, addon, outcome, code, status, trace, changes)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			id, e.At.UnixMilli(), e.Subject, e.Client, e.Username, e.Verb, e.Addon, string(e.Outcome), e.Code, e.Status, e.Trace, changesOf(e))
		if err != nil {
			return fmt.Errorf("registry: audit: %w", err)
		}
		return nil
	})
	return id, err
}

func (s *store) EndAudit(ctx context.Context, e AuditEntry) error {
	return s.note(ctx, func(ctx context.Context, tx querier) error {
		_, err := tx.ExecContext(ctx, "UPDATE audit SET addon = $1, outcome = $2, code = $3, status = $4, changes = $5 WHERE id = $6",
			e.Addon, string(e.Outcome), e.Code, e.Status, changesOf(e), e.ID)
		if err != nil {
			return fmt.Errorf("registry: audit: %w", err)
		}
		return nil
	})
}

func changesOf(e AuditEntry) string {
	if len(e.Changes) == 0 {
		return "{}"
	}
	return string(e.Changes)
}

func (s *store) Audit(ctx context.Context, q AuditQuery) (all []AuditEntry, err error) {
	where, args := []string{"1 = 1"}, []any{}
	if q.Addon != "" {
		args = append(args, q.Addon)
		where = append(where, fmt.Sprintf("addon = $%d", len(args)))
	}
	if q.Before > 0 {
		args = append(args, q.Before)
		where = append(where, fmt.Sprintf("id < $%d", len(args)))
	}
	args = append(args, q.Limit)
	err = s.look(ctx, func(ctx context.Context, db querier) error {
		rows, err := db.QueryContext(ctx, `SELECT id, at, subject, client, username, verb, addon, outcome, code, status, trace, changes
			FROM audit WHERE `+strings.Join(where, " AND ")+fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(args)), args...)
		all, err = collect(rows, err, func(r *sql.Rows) (e AuditEntry, err error) {
			var at int64
			var changes string
			err = r.Scan(&e.ID, &at, &e.Subject, &e.Client, &e.Username, &e.Verb, &e.Addon, (*string)(&e.Outcome), &e.Code, &e.Status, &e.Trace, &changes)
			e.At, e.Changes = time.UnixMilli(at).UTC(), []byte(changes)
			return e, err
		})
		return err
	})
	return all, err
}

func (s *store) TrimAudit(ctx context.Context, before time.Time, most int) error {
	return s.note(ctx, func(ctx context.Context, tx querier) error {
		for _, trim := range []struct {
			statement string
			args      []any
		}{
			{"DELETE FROM audit WHERE at < $1", []any{before.UnixMilli()}},
			// Whoever may not write must not push out what others did.
			{`DELETE FROM audit WHERE outcome = $1 AND id <=
				(SELECT id FROM audit WHERE outcome = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`, []any{string(AuditForbidden), most / 10}},
			{"DELETE FROM audit WHERE id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET $1)", []any{most}},
		} {
			if _, err := tx.ExecContext(ctx, trim.statement, trim.args...); err != nil {
				return fmt.Errorf("registry: audit: %w", err)
			}
		}
		return nil
	})
}
