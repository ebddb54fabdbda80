package registry

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"zaentrum.io/zae/internal/fault"
)

// failure is what a database said, without a password. It is for the log of those who run it.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

// Cause is what a database said that made a fault.Database, for a log: no password is in it, and no value of a row. Empty
// when err is no such fault.
func Cause(err error) string {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.text
	}
	return ""
}

// failed is an error of the database: a fault.Database when it cannot be had as it should, and an error of ours else.
// Faults stay as they are.
func (s *store) failed(err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok || err == nil {
		return err
	}
	said := &failure{text: s.scrub(explain(err)), err: err}
	switch {
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return fault.New(fault.Database, "the registry's database did not answer in time").Because(said)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Database, "the request ended before the registry's database answered").Because(said)
	case lost(err):
		return fault.New(fault.Database, "the registry's database cannot be reached").Because(said)
	case unfit(err):
		return fault.New(fault.Database, "the registry's database does not take the request").Because(said)
	}
	return said
}

// scrub takes the password out of a text, wherever the driver may have got it from.
func (s *store) scrub(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

// explain is what went wrong in one line. What PostgreSQL says of data quotes it, so that only its code is told.
func explain(err error) string {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		text := "PostgreSQL answers " + said.Code
		if class := class(said); class != "22" && class != "23" {
			text += ": " + said.Message
		}
		return text
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// class is the first part of an SQLSTATE.
func class(e *pgconn.PgError) string {
	if len(e.Code) != 5 {
		return ""
	}
	return e.Code[:2]
}

// lost tells whether there is no connection (any more).
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Connection exceptions; being shut down, crashed or starting; and ended for having stood still.
		return class(said) == "08" || strings.HasPrefix(said.Code, "57P") || said.Code == "25P03"
	}
	for _, sign := range []error{driver.ErrBadConn, pgconn.ErrConnClosed, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// unfit tells whether the database is there and cannot work: without room, rights or the file.
func unfit(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch class(said) {
		case "25", "28", "3D", "53", "54", "55", "57", "58", "XX": // read-only, refused, missing, full, busy, broken
			return true
		}
		return again(err) || said.Code == "42501"
	}
	if said, ok := errors.AsType[*sqlite.Error](err); ok {
		switch said.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
			sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM:
			return true
		}
	}
	return false
}

// again tells whether a transaction failed because of another at the same time, and may be done over: it could not be
// put in a row with it, waited for it in a circle, or wrote the same key.
func again(err error) bool {
	if said, ok := errors.AsType[*sqlite.Error](err); ok {
		return said.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || said.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (said.Code == "40001" || said.Code == "40P01" || said.Code == "23505")
}
