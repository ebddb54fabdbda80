package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry/capability"
)

// store is the registry in an SQL database. Its statements are those SQLite and PostgreSQL share.
type store struct {
	db *sql.DB
	// name is the database in errors.
	name string
	// secrets are in no error.
	secrets []string
	dialect dialect

	mu        sync.Mutex
	lastAudit int64 // the id that this process gave last
}

const (
	// callTimeout bounds one call of the registry.
	callTimeout = 15 * time.Second
	// maxAttempts is how often a transaction is done over that others got in the way of.
	maxAttempts = 12
	// maxConnects is how often one is done over for which the connection was lost.
	maxConnects = 3
)

// Nobody else's transaction is seen half done, whatever the database does by default. SQLite does not do it otherwise.
var (
	writing = &sql.TxOptions{Isolation: sql.LevelSerializable}
	noting  = &sql.TxOptions{}
	reading = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
)

// querier is a database or a transaction on it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (s *store) Ping(ctx context.Context) error {
	return s.look(ctx, func(ctx context.Context, q querier) error {
		var one int
		return q.QueryRowContext(ctx, "SELECT COUNT(*) FROM apps WHERE key = $1", "").Scan(&one)
	})
}

func (s *store) Close() error { return s.db.Close() }

// look reads with one statement.
func (s *store) look(ctx context.Context, do func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.repeat(ctx, func() (bool, error) { return true, do(ctx, s.db) })
}

// view reads with several statements, as of one moment.
func (s *store) view(ctx context.Context, do func(context.Context, querier) error) error {
	return s.transact(ctx, reading, do)
}

// change runs do in one transaction: all of it happens, or none. do is run again when others got in the way, or the
// connection was lost before the end.
func (s *store) change(ctx context.Context, do func(context.Context, querier) error) error {
	return s.transact(ctx, writing, do)
}

// note is change for what no other row depends on, so that writers of it do not meet.
func (s *store) note(ctx context.Context, do func(context.Context, querier) error) error {
	return s.transact(ctx, noting, do)
}

func (s *store) transact(ctx context.Context, options *sql.TxOptions, do func(context.Context, querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.repeat(ctx, func() (bool, error) {
		tx, err := s.db.BeginTx(ctx, options)
		if err != nil {
			return true, err
		}
		if err := do(ctx, tx); err != nil {
			_ = tx.Rollback() // the first error is the one that counts
			return true, err
		}
		// When the connection is lost now, nobody knows whether it happened.
		return options.ReadOnly, tx.Commit()
	})
}

// repeat runs do until it succeeds or repeating does not help, and answers its error as failed does. do tells whether
// nothing has happened when the connection was lost.
func (s *store) repeat(ctx context.Context, do func() (bool, error)) error {
	connects := 1
	for attempt := 1; ; attempt++ {
		nothing, err := do()
		if err == nil {
			return nil
		}
		switch {
		case ctx.Err() != nil, attempt == maxAttempts:
			return s.failed(err)
		case again(err):
		case lost(err) && nothing && connects < maxConnects:
			connects++
		default:
			return s.failed(err)
		}
		if !pause(ctx, attempt) {
			return s.failed(err)
		}
	}
}

// pause waits a while, longer with each attempt, and not as long as another that waits: two that met once should not
// meet again. It is false when ctx has ended.
func pause(ctx context.Context, attempt int) bool {
	timer := time.NewTimer(time.Duration(1+rand.IntN(10<<min(attempt, 6))) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *store) Register(ctx context.Context, r Registration) error {
	key := r.Manifest.Service
	doc, err := r.Manifest.JSON()
	if err != nil {
		return err
	}
	rows := r.Manifest.Rows(r.Place)
	err = s.change(ctx, func(ctx context.Context, tx querier) error {
		owner, err := ownerOf(ctx, tx, key)
		if err != nil {
			return err
		}
		if owner != OwnedByNobody && owner != ownerFor(r.Source) {
			return fault.New(fault.NameTaken, "%s belongs to %s", key, owner).
				WithHint("remove that one first")
		}
		if err := refuseMove(ctx, tx, r); err != nil {
			return err
		}
		// The addon's rows go with its record.
		if _, err := tx.ExecContext(ctx, "DELETE FROM addons WHERE key = $1", key); err != nil {
			return fmt.Errorf("registry: %w", err)
		}
		if err := refuseTaken(ctx, tx, rows); err != nil {
			return err
		}
		if err := insertAddon(ctx, tx, r, rows.App, doc); err != nil {
			return err
		}
		if err := insertRows(ctx, tx, key, rows); err != nil {
			return err
		}
		if err := clearFailure(ctx, tx, key); err != nil || !r.DryRun {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

// errDryRun ends a transaction that is not to be kept.
var errDryRun = fault.New(fault.Internal, "a dry run")

// refuseMove refuses an addon from an address that is registered at another one, unless that is wanted.
func refuseMove(ctx context.Context, tx querier, r Registration) error {
	if r.Source != SourceAddress || r.MayMove {
		return nil
	}
	var address string
	err := tx.QueryRowContext(ctx, "SELECT address FROM addons WHERE key = $1", r.Manifest.Service).Scan(&address)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("registry: %w", err)
	case address != r.Place.ProxyURL:
		return fault.New(fault.NameTaken, "addon %s is registered at %s", r.Manifest.Service, address).
			WithHint("send replaceAddress to move it")
	}
	return nil
}

// ownerFor is the owner of the keys of addons of that source.
func ownerFor(source Source) Owner {
	if source == SourceChart {
		return OwnedByChart
	}
	return OwnedByAddress
}

// refuseTaken refuses rows whose keys or workloads are another's. The addon's own rows are gone already.
func refuseTaken(ctx context.Context, tx querier, rows capability.Rows) error {
	taken := func(query, value, what string) error {
		var owner string
		err := tx.QueryRowContext(ctx, query, value).Scan(&owner)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return fmt.Errorf("registry: %w", err)
		case owner == "":
			return fault.New(fault.NameTaken, "%s %s belongs to %s", what, value, OwnedByHand)
		}
		return fault.New(fault.NameTaken, "%s %s belongs to addon %s", what, value, owner)
	}
	for _, proxy := range slices.Compact([]string{rows.App.Key, rows.App.ProxyKey}) {
		if err := taken("SELECT COALESCE(addon, '') FROM apps WHERE key = $1 OR proxy_key = $1", proxy, "app"); err != nil {
			return err
		}
	}
	for _, t := range rows.Tiles {
		if err := taken("SELECT COALESCE(addon, '') FROM tiles WHERE key = $1", t.Key, "tile"); err != nil {
			return err
		}
	}
	for _, sl := range rows.Slots {
		if err := taken("SELECT COALESCE(addon, '') FROM slots WHERE key = $1", sl.Key, "slot"); err != nil {
			return err
		}
	}
	for _, c := range rows.Components {
		if err := taken("SELECT addon FROM components WHERE workload = $1", c.Workload, "workload"); err != nil {
			return err
		}
	}
	return nil
}

func insertAddon(ctx context.Context, tx querier, r Registration, app capability.App, doc []byte) error {
	address := ""
	if r.Source == SourceAddress {
		address = r.Place.ProxyURL
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO addons
		(key, source, chart_ref, chart_version, chart_digest, address, title, version, manifest, registered_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		app.Key, string(r.Source), r.Chart.Ref, r.Chart.Version, r.Chart.Digest, address, app.Title, r.Manifest.Version,
		string(doc), r.At.UnixMilli())
	if err != nil {
		return fmt.Errorf("registry: addon %s: %w", app.Key, err)
	}
	return nil
}

func insertRows(ctx context.Context, tx querier, key string, rows capability.Rows) error {
	if err := insertApp(ctx, tx, &key, rows.App); err != nil {
		return err
	}
	for _, t := range rows.Tiles {
		_, err := tx.ExecContext(ctx, `INSERT INTO tiles
			(key, addon, app, title, description, icon, target, space_key, space_title, space_ord, ord)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			t.Key, key, t.App, t.Title, t.Description, t.Icon, t.Target, t.Space.Key, t.Space.Title, t.Space.Ord, t.Ord)
		if err != nil {
			return fmt.Errorf("registry: tile %s: %w", t.Key, err)
		}
	}
	for _, sl := range rows.Slots {
		_, err := tx.ExecContext(ctx, `INSERT INTO slots (key, addon, app, slot, kind, label, icon, url, ord)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			sl.Key, key, sl.App, sl.Slot, sl.Kind, sl.Label, sl.Icon, sl.URL, sl.Ord)
		if err != nil {
			return fmt.Errorf("registry: slot %s: %w", sl.Key, err)
		}
	}
	for i, c := range rows.Components {
		topics, err := json.Marshal(append([]string{}, c.Topics...))
		if err != nil {
			return fmt.Errorf("registry: component %s: %w", c.Name, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO components (addon, name, workload, role, summary, topics, ord)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			key, c.Name, c.Workload, c.Role, c.Summary, string(topics), i)
		if err != nil {
			return fmt.Errorf("registry: component %s: %w", c.Name, err)
		}
	}
	return nil
}

// insertApp inserts an app; one registered by hand has no addon.
func insertApp(ctx context.Context, tx querier, addon *string, a capability.App) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO apps
		(key, addon, proxy_key, proxy_url, base_url, title, description, icon)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		a.Key, addon, a.ProxyKey, a.ProxyURL, a.BaseURL, a.Title, a.Description, a.Icon)
	if err != nil {
		return fmt.Errorf("registry: app %s: %w", a.Key, err)
	}
	return nil
}

func (s *store) Remove(ctx context.Context, key string, source Source) ([]string, error) {
	removed := []string{}
	err := s.change(ctx, func(ctx context.Context, tx querier) error {
		removed = removed[:0]
		owner, err := ownerOf(ctx, tx, key)
		if err != nil {
			return err
		}
		if owner == ownerFor(source) {
			if removed, err = keysOf(ctx, tx, key); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM addons WHERE key = $1", key); err != nil {
				return fmt.Errorf("registry: %w", err)
			}
		}
		// A chart addon whose name is another's has a failure and no rows.
		if owner == ownerFor(source) || source == SourceChart {
			return clearFailure(ctx, tx, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// keysOf are the keys of all rows of an addon, sorted.
func keysOf(ctx context.Context, tx querier, addon string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT 'addon/' || key FROM addons WHERE key = $1
		UNION ALL SELECT 'app/' || key FROM apps WHERE addon = $1
		UNION ALL SELECT 'tile/' || key FROM tiles WHERE addon = $1
		UNION ALL SELECT 'slot/' || key FROM slots WHERE addon = $1`, addon)
	keys, err := collect(rows, err, func(r *sql.Rows) (key string, err error) {
		err = r.Scan(&key)
		return key, err
	})
	slices.Sort(keys) // by bytes, whatever the database's collation
	return keys, err
}

func (s *store) Owner(ctx context.Context, key string) (owner Owner, err error) {
	err = s.look(ctx, func(ctx context.Context, q querier) error {
		owner, err = ownerOf(ctx, q, key)
		return err
	})
	return owner, err
}

func ownerOf(ctx context.Context, q querier, key string) (Owner, error) {
	var source string
	err := q.QueryRowContext(ctx, "SELECT source FROM addons WHERE key = $1", key).Scan(&source)
	if err == nil {
		return ownerFor(Source(source)), nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("registry: %w", err)
	}
	var addon string
	err = q.QueryRowContext(ctx, "SELECT COALESCE(addon, '') FROM apps WHERE key = $1 OR proxy_key = $1", key).Scan(&addon)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return OwnedByNobody, nil
	case err != nil:
		return "", fmt.Errorf("registry: %w", err)
	case addon == "":
		return OwnedByHand, nil
	}
	return OwnedByProxy, nil
}

func (s *store) PutApp(ctx context.Context, app capability.App) error {
	if app.ProxyKey == "" {
		app.ProxyKey = app.Key
	}
	if app.BaseURL == "" {
		app.BaseURL = capability.BaseURL(app.Key)
	}
	return s.change(ctx, func(ctx context.Context, tx querier) error {
		owner, err := ownerOf(ctx, tx, app.Key)
		if err != nil {
			return err
		}
		if owner != OwnedByNobody && owner != OwnedByHand {
			return fault.New(fault.NameTaken, "%s belongs to an addon", app.Key).WithHint("remove that one first")
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM apps WHERE key = $1", app.Key); err != nil {
			return fmt.Errorf("registry: %w", err)
		}
		return insertApp(ctx, tx, nil, app)
	})
}

func (s *store) Fail(ctx context.Context, key, message string, at time.Time) error {
	return s.change(ctx, func(ctx context.Context, tx querier) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO registration_errors (addon, message, since) VALUES ($1, $2, $3)
			ON CONFLICT (addon) DO UPDATE SET message = excluded.message, since = excluded.since
			WHERE registration_errors.message <> excluded.message`, key, message, at.UnixMilli())
		if err != nil {
			return fmt.Errorf("registry: failure of %s: %w", key, err)
		}
		return nil
	})
}

func (s *store) Clear(ctx context.Context, key string) error {
	return s.change(ctx, func(ctx context.Context, tx querier) error { return clearFailure(ctx, tx, key) })
}

func clearFailure(ctx context.Context, q querier, key string) error {
	if _, err := q.ExecContext(ctx, "DELETE FROM registration_errors WHERE addon = $1", key); err != nil {
		return fmt.Errorf("registry: failure of %s: %w", key, err)
	}
	return nil
}
