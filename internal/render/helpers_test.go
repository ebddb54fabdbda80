package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"reflect"
	"testing"

	"zaentrum.io/zae/internal/chart"
)

// chartOf loads a chart of files by their names.
func chartOf(t testing.TB, files map[string]string) *chart.Chart {
	t.Helper()
	c := tryChart(t, files)
	if c == nil {
		t.Fatal("the chart cannot be loaded")
	}
	return c
}

// tryChart is chartOf for files that may be no chart; nil then.
func tryChart(t testing.TB, files map[string]string) *chart.Chart {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "chart/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil // a name that no archive holds
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := chart.Load(&chart.Archive{Bytes: out.Bytes()})
	if err != nil {
		return nil
	}
	return c
}

// unexportedOfHelm lets cmp look into Helm's charts: they know their parents and children privately.
func unexportedOfHelm(t reflect.Type) bool { return t.PkgPath() == "helm.sh/helm/v3/pkg/chart" }
