// Package inputs reads a chart's values.schema.json: which inputs the chart asks for, and whether values
// satisfy it.
//
// The schema is always read as JSON Schema draft-07 and comes from a stranger. Nothing is ever fetched for
// it, its size, depth, numbers, patterns and the work of one validation are bounded, and no message holds
// text from values: messages are made from the keyword that failed and from where it failed.
package inputs
