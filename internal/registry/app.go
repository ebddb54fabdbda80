package registry

import (
	"context"
	"database/sql"
)

func (s *store) App(ctx context.Context, key string) (*App, error) {
	// The key itself comes first: no key is another app's in the proxy, and if one were, it would not be taken over.
	rows, err := s.db.QueryContext(ctx, `SELECT key, COALESCE(addon, ''), proxy_key, proxy_url, base_url, title,
		description, icon FROM apps WHERE key = $1 OR proxy_key = $1 ORDER BY CASE WHEN key = $1 THEN 0 ELSE 1 END, key LIMIT 1`, key)
	found, err := collect(rows, err, func(r *sql.Rows) (a App, err error) {
		return a, r.Scan(&a.Key, &a.Addon, &a.ProxyKey, &a.ProxyURL, &a.BaseURL, &a.Title, &a.Description, &a.Icon)
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
