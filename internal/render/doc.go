// Package render turns a chart and values into objects, with Helm's template engine in memory, and keeps
// Helm's quirks in one place: number types, defaults of bundled charts, the shapes of its errors.
//
// It must never reach a cluster, the network or the environment, write to a logger, change the chart it is
// given, or let text that a template produced into an error: errors say where, not what (contract §1).
//
// A template runs inside this process and cannot be interrupted: a chart can spend memory and time until
// Render stops waiting, and a stack that overflows ends the process. Whoever must survive any chart runs
// Render in a process of its own.
package render
