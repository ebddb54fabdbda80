// Package worker does what a chart could use to hurt its reader, loading it, compiling its schema, merging,
// validating and rendering, in processes of their own, so that the program that asks outlives every chart.
//
// A Pool keeps a few processes of the same binary warm. Each does one job at a time, without environment,
// files or network of its own choosing, under bounds on processor time, time, memory, output and objects. A
// process that dies or overruns ends with its job: that job gets an *Overrun, which says what it needed too
// much of and nothing else, and the next one gets a new process.
//
// What a worker answers is data, decoded within bounds, and never code or text of a crash.
package worker
