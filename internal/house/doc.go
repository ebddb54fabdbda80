// Package house proves, with go list, that the packages of this module stand as the architecture says:
// imports point down, and each outside library has its place. It holds tests only.
package house
