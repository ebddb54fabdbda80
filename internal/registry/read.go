package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"zaentrum.io/zae/internal/registry/capability"
)

// collect reads all rows of a query and closes it.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows) (T, error)) (all []T, _ error) {
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err below is the one that counts
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return all, nil
}

func (s *store) Addon(ctx context.Context, key string) (*Addon, error) {
	found, err := s.addons(ctx, "WHERE key = $1", key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (s *store) Addons(ctx context.Context) ([]Addon, error) { return s.addons(ctx, "") }

// addons reads addons and their components as of one moment.
func (s *store) addons(ctx context.Context, where string, args ...any) (all []Addon, err error) {
	err = s.transact(ctx, &sql.TxOptions{ReadOnly: true}, func(tx querier) error {
		rows, err := tx.QueryContext(ctx, `SELECT key, source, chart_ref, chart_version, chart_digest, address, title,
			version, manifest, registered_at FROM addons `+where+` ORDER BY key`, args...)
		all, err = collect(rows, err, func(r *sql.Rows) (a Addon, err error) {
			var doc string
			var at int64
			err = r.Scan(&a.Key, (*string)(&a.Source), &a.Chart.Ref, &a.Chart.Version, &a.Chart.Digest, &a.Address, &a.Title,
				&a.Version, &doc, &at)
			a.Manifest, a.RegisteredAt = []byte(doc), time.UnixMilli(at).UTC()
			return a, err
		})
		if err != nil {
			return err
		}
		for i := range all {
			rows, err := tx.QueryContext(ctx, `SELECT name, workload, role, summary, topics FROM components
				WHERE addon = $1 ORDER BY ord`, all[i].Key)
			all[i].Components, err = collect(rows, err, scanComponent)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (s *store) Sources(ctx context.Context) (map[string]Source, error) {
	all := map[string]Source{}
	rows, err := s.db.QueryContext(ctx, "SELECT key, source FROM addons")
	_, err = collect(rows, err, func(r *sql.Rows) (key string, err error) {
		var source string
		err = r.Scan(&key, &source)
		all[key] = Source(source)
		return key, err
	})
	return all, err
}

func scanComponent(r *sql.Rows) (c capability.Component, err error) {
	var topics string
	if err := r.Scan(&c.Name, &c.Workload, &c.Role, &c.Summary, &topics); err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(topics), &c.Topics); err != nil {
		return c, fmt.Errorf("topics of component %s: %w", c.Name, err)
	}
	if len(c.Topics) == 0 {
		c.Topics = nil
	}
	return c, nil
}

func (s *store) Apps(ctx context.Context) ([]App, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key, COALESCE(addon, ''), proxy_key, proxy_url, base_url, title,
		description, icon FROM apps ORDER BY key`)
	return collect(rows, err, func(r *sql.Rows) (a App, err error) {
		return a, r.Scan(&a.Key, &a.Addon, &a.ProxyKey, &a.ProxyURL, &a.BaseURL, &a.Title, &a.Description, &a.Icon)
	})
}

func (s *store) Tiles(ctx context.Context) ([]capability.TileRow, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key, app, title, description, icon, target, space_key, space_title,
		space_ord, ord FROM tiles ORDER BY key`)
	return collect(rows, err, func(r *sql.Rows) (t capability.TileRow, err error) {
		return t, r.Scan(&t.Key, &t.App, &t.Title, &t.Description, &t.Icon, &t.Target, &t.Space.Key, &t.Space.Title,
			&t.Space.Ord, &t.Ord)
	})
}

func (s *store) Slots(ctx context.Context) ([]capability.SlotRow, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key, app, slot, kind, label, icon, url, ord FROM slots ORDER BY key`)
	return collect(rows, err, func(r *sql.Rows) (sl capability.SlotRow, err error) {
		return sl, r.Scan(&sl.Key, &sl.App, &sl.Slot, &sl.Kind, &sl.Label, &sl.Icon, &sl.URL, &sl.Ord)
	})
}

func (s *store) Failure(ctx context.Context, key string) (*Failure, error) {
	var f Failure
	var since int64
	err := s.db.QueryRowContext(ctx, "SELECT message, since FROM registration_errors WHERE addon = $1", key).
		Scan(&f.Message, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	f.Since = time.UnixMilli(since).UTC()
	return &f, nil
}

func (s *store) Failures(ctx context.Context) (map[string]Failure, error) {
	all := map[string]Failure{}
	rows, err := s.db.QueryContext(ctx, "SELECT addon, message, since FROM registration_errors")
	_, err = collect(rows, err, func(r *sql.Rows) (key string, err error) {
		var f Failure
		var since int64
		err = r.Scan(&key, &f.Message, &since)
		f.Since = time.UnixMilli(since).UTC()
		all[key] = f
		return key, err
	})
	return all, err
}
