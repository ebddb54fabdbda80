package chart

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"zaentrum.io/zae/internal/fault"
)

const userAgent = "zae"

// fetchHTTPS returns the archive behind a link. When the last one fetched is at hand, the server is asked
// whether it changed.
func (f *Fetcher) fetchHTTPS(ctx context.Context, w wish, known []record) (got, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.ref.url(), nil)
	if err != nil {
		return got{}, badReference("is not a valid URL")
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "*/*")
	last, data, conditional := f.cache.newest(known)
	conditional = conditional && (last.ETag != "" || last.LastModified != "")
	if conditional {
		if last.ETag != "" {
			req.Header.Set("If-None-Match", last.ETag)
		}
		if last.LastModified != "" {
			req.Header.Set("If-Modified-Since", last.LastModified)
		}
	}
	resp, err := f.courier.client.Do(req)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it is only read from
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return got{data, last, revalidated}, nil
	case resp.StatusCode != http.StatusOK:
		return got{}, &statusError{resp.StatusCode}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return got{}, err
	}
	if len(body) == 0 {
		return got{}, fault.New(fault.Chart, "chart %s: the archive is empty", w).WithHint("check that the link leads to a packed chart")
	}
	rec := record{
		Archive:      digestOf(body),
		ETag:         resp.Header.Get("ETag"),
		LastModified: resp.Header.Get("Last-Modified"),
	}
	if w.digest == "" || rec.matches(w.digest) {
		f.cache.keep(rec.Archive, body)
	}
	return got{body, rec, downloaded}, nil
}

// isNetwork tells whether a request failed on its way, as opposed to being answered oddly.
func isNetwork(err error) bool {
	var ne net.Error
	var ue *url.Error
	return errors.As(err, &ne) || errors.As(err, &ue)
}
