package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	err = s.view(ctx, func(ctx context.Context, tx querier) error {
		rows, err := tx.QueryContext(ctx, `SELECT key, source, chart_ref, chart_version, chart_digest, address, title,
			version, manifest, registered_at FROM addons `+where, args...)
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
		parts, err := componentsOf(ctx, tx, where, args...)
		for i := range all {
			all[i].Components = parts[all[i].Key]
		}
		return err
	})
	sortByKey(all, func(a Addon) string { return a.Key })
	return all, err
}

// componentsOf are the components of the addons that where selects, by addon, in their order.
func componentsOf(ctx context.Context, tx querier, where string, args ...any) (map[string][]capability.Component, error) {
	all := map[string][]capability.Component{}
	rows, err := tx.QueryContext(ctx, `SELECT addon, name, workload, role, summary, topics FROM components
		WHERE addon IN (SELECT key FROM addons `+where+`) ORDER BY addon, ord`, args...)
	_, err = collect(rows, err, func(r *sql.Rows) (addon string, _ error) {
		addon, c, err := scanComponent(r)
		all[addon] = append(all[addon], c)
		return addon, err
	})
	return all, err
}

// sortByKey sorts by bytes, whatever the database's collation.
func sortByKey[T any](all []T, key func(T) string) {
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
}

func scanComponent(r *sql.Rows) (addon string, c capability.Component, err error) {
	var topics string
	if err := r.Scan(&addon, &c.Name, &c.Workload, &c.Role, &c.Summary, &topics); err != nil {
		return "", c, err
	}
	if err := json.Unmarshal([]byte(topics), &c.Topics); err != nil {
		return "", c, fmt.Errorf("topics of component %s: %w", c.Name, err)
	}
	if len(c.Topics) == 0 {
		c.Topics = nil
	}
	return addon, c, nil
}

// rowsOf reads all that a query selects, sorted by key.
func rowsOf[T any](ctx context.Context, s *store, query string, scan func(*sql.Rows) (T, error), key func(T) string, args ...any) (all []T, err error) {
	err = s.look(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.QueryContext(ctx, query, args...)
		all, err = collect(rows, err, scan)
		return err
	})
	sortByKey(all, key)
	return all, err
}

func (s *store) Sources(ctx context.Context) (map[string]Source, error) {
	all := map[string]Source{}
	_, err := rowsOf(ctx, s, "SELECT key, source FROM addons", func(r *sql.Rows) (key string, err error) {
		var source string
		err = r.Scan(&key, &source)
		all[key] = Source(source)
		return key, err
	}, func(key string) string { return key })
	return all, err
}

func (s *store) Apps(ctx context.Context) ([]App, error) {
	return rowsOf(ctx, s, `SELECT key, COALESCE(addon, ''), proxy_key, proxy_url, base_url, title, description, icon FROM apps`,
		scanApp, keyOfApp)
}

func scanApp(r *sql.Rows) (a App, err error) {
	err = r.Scan(&a.Key, &a.Addon, &a.ProxyKey, &a.ProxyURL, &a.BaseURL, &a.Title, &a.Description, &a.Icon)
	return a, err
}

func keyOfApp(a App) string { return a.Key }

func (s *store) Tiles(ctx context.Context) ([]capability.TileRow, error) {
	return rowsOf(ctx, s, `SELECT key, app, title, description, icon, target, space_key, space_title, space_ord, ord FROM tiles`,
		func(r *sql.Rows) (t capability.TileRow, err error) {
			err = r.Scan(&t.Key, &t.App, &t.Title, &t.Description, &t.Icon, &t.Target, &t.Space.Key, &t.Space.Title,
				&t.Space.Ord, &t.Ord)
			return t, err
		}, func(t capability.TileRow) string { return t.Key })
}

func (s *store) Slots(ctx context.Context) ([]capability.SlotRow, error) {
	return rowsOf(ctx, s, `SELECT key, app, slot, kind, label, icon, url, ord FROM slots`,
		func(r *sql.Rows) (sl capability.SlotRow, err error) {
			err = r.Scan(&sl.Key, &sl.App, &sl.Slot, &sl.Kind, &sl.Label, &sl.Icon, &sl.URL, &sl.Ord)
			return sl, err
		}, func(sl capability.SlotRow) string { return sl.Key })
}

func (s *store) Failure(ctx context.Context, key string) (*Failure, error) {
	var f *Failure
	err := s.look(ctx, func(ctx context.Context, q querier) error {
		var message string
		var since int64
		err := q.QueryRowContext(ctx, "SELECT message, since FROM registration_errors WHERE addon = $1", key).Scan(&message, &since)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		f = &Failure{Message: message, Since: time.UnixMilli(since).UTC()}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *store) Failures(ctx context.Context) (map[string]Failure, error) {
	all := map[string]Failure{}
	_, err := rowsOf(ctx, s, "SELECT addon, message, since FROM registration_errors", func(r *sql.Rows) (key string, err error) {
		var f Failure
		var since int64
		err = r.Scan(&key, &f.Message, &since)
		f.Since = time.UnixMilli(since).UTC()
		all[key] = f
		return key, err
	}, func(key string) string { return key })
	return all, err
}
