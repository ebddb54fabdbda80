package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"zaentrum.io/zae/internal/apitype"
)

// Setup reads the setup checklist of a registered addon. It is fault.NotFound for an addon that is not registered, or has
// none; an addon that does not tell its own is no fault, but the state unknown.
func (c *Client) Setup(ctx context.Context, name string) (*Answer[apitype.Setup], error) {
	path := strings.Replace(apitype.PathSetup, "{name}", url.PathEscape(name), 1)
	return call[apitype.Setup](ctx, c, request{method: http.MethodGet, path: path})
}
