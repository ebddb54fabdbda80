package worker_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"zaentrum.io/zae/internal/worker"
)

// TestNothingIsFetchedForAChart lets schemas and templates name a listener in every way that something could be
// fetched by, and counts who connects to it.
func TestNothingIsFetchedForAChart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var hits atomic.Int64
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			_ = c.Close()
		}
	}()
	host := listener.Addr().String()
	if c, err := net.Dial("tcp", host); err != nil { //nolint:noctx // it counts, which is to be seen once
		t.Fatal(err)
	} else if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the listener talks")
	}
	if hits.Swap(0) != 1 {
		t.Fatal("the listener does not count")
	}

	url := "http://" + host + "/schema.json"
	schemas := map[string]string{
		"ref":              `{"properties":{"a":{"$ref":"` + url + `"}}}`,
		"ref with pointer": `{"$ref":"` + url + `#/definitions/a"}`,
		"id and ref":       `{"$id":"http://` + host + `/","properties":{"a":{"$ref":"schema.json"}}}`,
		"nested id":        `{"definitions":{"d":{"$id":"http://` + host + `/d/","properties":{"a":{"$ref":"b.json"}}}},"$ref":"#/definitions/d"}`,
		"scheme-relative":  `{"$id":"http://example.org/","$ref":"//` + host + `/schema.json"}`,
		"schema":           `{"$schema":"` + url + `"}`,
		"schema inside":    `{"properties":{"a":{"$schema":"` + url + `","type":"string"}}}`,
		"old id":           `{"id":"http://` + host + `/","properties":{"a":{"$ref":"schema.json"}}}`,
		"dynamic ref":      `{"$dynamicRef":"` + url + `"}`,
		"recursive ref":    `{"$recursiveRef":"` + url + `"}`,
		"vocabulary":       `{"$vocabulary":{"` + url + `":true}}`,
		"items":            `{"properties":{"a":{"type":"array","items":{"$ref":"` + url + `"}}}}`,
		"if":               `{"if":{"$ref":"` + url + `"},"then":{"$ref":"` + url + `"}}`,
		"dependencies":     `{"dependencies":{"a":{"$ref":"` + url + `"}}}`,
		"media type":       `{"properties":{"a":{"contentMediaType":"application/json","contentSchema":{"$ref":"` + url + `"}}}}`,
		"https":            `{"$ref":"https://` + host + `/schema.json"}`,
		"file":             `{"$ref":"file:///etc/hostname"}`,
		"relative":         `{"$ref":"../../../../etc/hostname"}`,
	}
	pool, i := newPool(t, worker.Options{}), 0
	for name, schema := range schemas {
		for _, bundled := range []bool{false, true} {
			i++
			dir := filepath.Join(t.TempDir(), "reaching")
			write := func(file, text string) {
				t.Helper()
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			meta := "apiVersion: v2\nname: reaching\nversion: 1.0.%d\nsources: [" + url + "]\nicon: " + url + "\n"
			prefix := ""
			if bundled {
				meta += "dependencies: [{name: part, version: 1.0.0, repository: \"http://" + host + "\"}]\n"
				prefix = "charts/part/"
				write("charts/part/Chart.yaml", "apiVersion: v2\nname: part\nversion: 1.0.0\n")
			}
			write("Chart.yaml", fmt.Sprintf(meta, i))
			write(prefix+"values.yaml", "a: text\n")
			write(prefix+"values.schema.json", schema)
			write("templates/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  host: {{ getHostByName \""+host+"\" | quote }}\n  found: {{ lookup \"v1\" \"Secret\" \"\" \"\" | toJson | quote }}\n")
			said, got := tryAll(t, pool, archive(t, dir))
			refers := strings.Contains(schema, `"$ref"`) && name != "media type"
			if refers && said == "" {
				t.Errorf("%s, bundled %t: accepted, %+v", name, bundled, got)
			}
			if strings.Contains(said, host) {
				t.Errorf("%s, bundled %t: %s", name, bundled, said)
			}
		}
	}
	_ = listener.Close()
	<-accepted
	t.Logf("%d charts, %d connections", i, hits.Load())
	if hits.Load() != 0 {
		t.Errorf("%d connections were made", hits.Load())
	}
}
