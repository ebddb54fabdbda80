package portal_test

import (
	"context"
	"testing"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
)

func TestTheGoClientMakesTheCallsOfTheRegistry(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, byAddress)
	b := newLoneBench(t, resolving(map[string]*primary{"my-addon": p}))
	instance, err := client.ParseInstance(b.url)
	b.must(err)
	c := client.New(client.Options{Instance: instance, Bearer: func(context.Context) (string, error) { return b.token, nil }})
	defer c.Close()
	ctx := t.Context()
	added, err := c.AddAddress(ctx, apitype.AddressRequest{ProxyURL: "http://my-addon"})
	b.must(err)
	if added.Doc.Name != "example" || added.Doc.DryRun {
		t.Errorf("%+v", added.Doc)
	}
	apps, err := c.Apps(ctx)
	b.must(err)
	tiles, err := c.Tiles(ctx)
	b.must(err)
	all, err := c.Slots(ctx, "")
	b.must(err)
	none, err := c.Slots(ctx, "elsewhere")
	b.must(err)
	if len(apps.Doc.Apps) != 1 || len(tiles.Doc.Tiles) != 1 || len(all.Doc.Slots) != 1 || len(none.Doc.Slots) != 0 || apps.ETag == "" {
		t.Errorf("%+v, %+v, %+v, %+v", apps.Doc, tiles.Doc, all.Doc, none.Doc)
	}
	if _, err := c.AddAddress(ctx, apitype.AddressRequest{ProxyURL: "http://169.254.169.254"}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	removed, err := c.RemoveAddress(ctx, "example")
	b.must(err)
	if len(removed.Doc.Removed) != 4 {
		t.Errorf("%+v", removed.Doc)
	}
	audit, err := c.Audit(ctx, "example", 0, 1)
	b.must(err)
	if len(audit.Doc.Entries) != 1 || audit.Doc.Entries[0].Verb != "removeAddon" || audit.Doc.Next == 0 {
		t.Errorf("%+v", audit.Doc)
	}
	older, err := c.Audit(ctx, "example", audit.Doc.Next, 0)
	b.must(err)
	if len(older.Doc.Entries) != 1 || older.Doc.Entries[0].Verb != "addAddon" {
		t.Errorf("%+v", older.Doc)
	}
}
