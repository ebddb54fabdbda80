// Package chart turns a reference into a loaded chart: it parses references and names, fetches archives
// through one guarded client, keeps them in a content-addressed cache, and loads them within limits.
//
// It must never connect to an address the guard refuses, use a credential of its surroundings, unpack
// without a bound, download a chart's dependencies, or put the query or the credentials of a URL into an
// error. Helm appears here and in package render, and nowhere else.
package chart
