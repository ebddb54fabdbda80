package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"zaentrum.io/zae/internal/apitype"
)

// AddAddress registers an addon from its address, or reads its manifest again; with DryRun it only shows what that makes.
func (c *Client) AddAddress(ctx context.Context, body apitype.AddressRequest) (*Answer[apitype.AddressAnswer], error) {
	return call[apitype.AddressAnswer](ctx, c, request{method: http.MethodPost, path: apitype.PathAddons, body: body})
}

// RemoveAddress removes an addon that was registered from its address.
func (c *Client) RemoveAddress(ctx context.Context, name string) (*Answer[apitype.DeleteAnswer], error) {
	return call[apitype.DeleteAnswer](ctx, c, request{method: http.MethodDelete, path: apitype.PathAddons + "/" + url.PathEscape(name)})
}

// Audit reads who asked for which write: about one addon, or all; the entries before one, or the newest; so many, or as the
// server likes.
func (c *Client) Audit(ctx context.Context, addon string, before int64, limit int) (*Answer[apitype.Audit], error) {
	query := url.Values{}
	if addon != "" {
		query.Set("addon", addon)
	}
	if before > 0 {
		query.Set("before", strconv.FormatInt(before, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return call[apitype.Audit](ctx, c, request{method: http.MethodGet, path: apitype.PathAudit, query: query})
}

// Apps reads all registered apps.
func (c *Client) Apps(ctx context.Context) (*Answer[apitype.Apps], error) {
	return call[apitype.Apps](ctx, c, request{method: http.MethodGet, path: apitype.PathApps})
}

// Tiles reads the tiles of the launchpad, in its order.
func (c *Client) Tiles(ctx context.Context) (*Answer[apitype.Tiles], error) {
	return call[apitype.Tiles](ctx, c, request{method: http.MethodGet, path: apitype.PathTiles})
}

// Slots reads what apps put into a slot; into all of them when slot is empty.
func (c *Client) Slots(ctx context.Context, slot string) (*Answer[apitype.Slots], error) {
	r := request{method: http.MethodGet, path: apitype.PathSlots}
	if slot != "" {
		r.query = url.Values{"slot": {slot}}
	}
	return call[apitype.Slots](ctx, c, r)
}
