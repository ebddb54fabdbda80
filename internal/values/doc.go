// Package values layers what a chart is rendered with: the chart's defaults, generated values, what the
// resource says, what its values objects hold and, above all of them, the platform's facts.
//
// It is pure: randomness and text are arguments. It never changes a tree it was given, and no error it
// makes carries a value; an error may carry a dotted path, which is a name.
package values
