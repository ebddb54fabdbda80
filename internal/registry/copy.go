package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"zaentrum.io/zae/internal/fault"
)

// tables are all tables, each after those it refers to.
var tables = []string{"addons", "apps", "tiles", "slots", "components", "registration_errors", "requests", "audit"}

// Copy copies all rows of the registry in one database into another, both named as for Open. The source is read as of one
// moment and may be in use; it must be there, with the tables of this release. The target is made where there is none, and
// must be empty: else, and when anything fails, nothing is written into it. It answers the number of rows.
func Copy(ctx context.Context, from, to string) (int, error) {
	source, err := openExisting(ctx, from)
	if err != nil {
		return 0, err
	}
	defer func() { _ = source.db.Close() }() // read only
	opened, err := Open(ctx, to)
	if err != nil {
		return 0, err
	}
	target, ok := opened.(*store)
	if !ok {
		return 0, errors.New("registry: the target is of another kind")
	}
	rows, err := copyRows(ctx, source, target)
	return rows, errors.Join(err, target.db.Close())
}

// openExisting opens a registry without making or changing anything.
func openExisting(ctx context.Context, where string) (*store, error) {
	if !strings.Contains(where, "://") {
		if _, err := os.Stat(where); err != nil {
			return nil, fault.New(fault.Usage, "there is no registry %s", where).Because(err)
		}
	}
	s, err := open(where)
	if err != nil {
		return nil, err
	}
	p, err := provider(s.db, s.dialect)
	if err == nil {
		var current, target int64
		current, target, err = p.GetVersions(ctx)
		if err == nil && current != target {
			err = fault.New(fault.Invalid, "registry %s: tables are of version %d, and those of this release of %d", s.name, current, target).
				WithHint("use the release that serves it")
		}
	}
	if err != nil {
		_ = s.db.Close() // the first error is the one that counts
		return nil, s.told(err)
	}
	return s, nil
}

func copyRows(ctx context.Context, source, target *store) (total int, _ error) {
	in, err := source.db.BeginTx(ctx, reading)
	if err != nil {
		return 0, source.told(err)
	}
	defer func() { _ = in.Rollback() }() // it has read only
	out, err := target.db.BeginTx(ctx, writing)
	if err != nil {
		return 0, target.told(err)
	}
	defer func() { _ = out.Rollback() }() // nothing, once it is committed
	for _, table := range tables {
		var there int
		if err := out.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&there); err != nil {
			return 0, target.told(err)
		}
		if there > 0 {
			return 0, fault.New(fault.Usage, "registry %s is not empty: it has %d rows of %s", target.name, there, table).
				WithHint("copy into a new database")
		}
		rows, err := copyTable(ctx, in, out, table)
		if err != nil {
			return 0, target.told(err)
		}
		total += rows
	}
	if err := out.Commit(); err != nil {
		return 0, target.told(err)
	}
	return total, nil
}

func copyTable(ctx context.Context, in, out *sql.Tx, table string) (copied int, _ error) {
	rows, err := in.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }() // Err below is the one that counts
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	values, into, places := make([]any, len(columns)), make([]any, len(columns)), make([]string, len(columns))
	for i := range columns {
		into[i], places[i] = &values[i], fmt.Sprintf("$%d", i+1)
	}
	insert := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")"
	for ; rows.Next(); copied++ {
		if err := rows.Scan(into...); err != nil {
			return 0, err
		}
		if _, err := out.ExecContext(ctx, insert, values...); err != nil {
			return 0, fmt.Errorf("%s: %w", table, err)
		}
	}
	return copied, rows.Err()
}
