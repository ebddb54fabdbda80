package registry

import "context"

func (s *store) App(ctx context.Context, key string) (*App, error) {
	found, err := rowsOf(ctx, s, `SELECT key, COALESCE(addon, ''), proxy_key, proxy_url, base_url, title, description, icon FROM apps
		WHERE key = $1 OR proxy_key = $1`, scanApp, keyOfApp, key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// No key is another app's in the proxy. If one were, it would not be taken over.
	for i := range found {
		if found[i].Key == key {
			return &found[i], nil
		}
	}
	return &found[0], nil
}
