package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/fault"
)

// tgz packs files below a folder called chart.
func tgz(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var headers []tar.Header
	for _, name := range slices.Sorted(maps.Keys(files)) {
		headers = append(headers, tar.Header{Name: "chart/" + name, Typeflag: tar.TypeReg})
	}
	return pack(t, headers, func(h tar.Header) string { return files[strings.TrimPrefix(h.Name, "chart/")] })
}

// pack writes an archive of entries as they are.
func pack(t testing.TB, headers []tar.Header, content func(tar.Header) string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg && content != nil {
			text = content(h)
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.Size, h.Mode = int64(len(text)), 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
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
	return out.Bytes()
}

const chartYAML = "apiVersion: v2\nname: example\nversion: 1.2.0\n"

// example is a chart archive whose content depends on mark.
func example(t testing.TB, mark string) []byte {
	return tgz(t, map[string]string{"Chart.yaml": chartYAML + "description: " + mark + "\n", "values.yaml": "a: 10737418240\n"})
}

func archiveOf(data []byte) *Archive { return &Archive{Bytes: data, Digest: digestOf(data)} }

func wantFault(t testing.TB, err error, code fault.Code, parts ...string) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Fatalf("code %q, want %q (%v)", got, code, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}
