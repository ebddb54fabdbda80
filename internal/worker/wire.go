package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"zaentrum.io/zae/internal/render"
)

// request is one job on its way to a worker.
type request struct {
	Digest string
	// Archive is left out when the worker should have the chart.
	Archive []byte
	// Job is an encoded Job; nil when the chart is only inspected.
	Job   []byte
	Twice bool
	// Lint, when not empty, is where the chart lies unpacked for Helm's lint, which then runs instead of rendering.
	Lint string
}

// response is the answer.
type response struct {
	// Need asks for the archive.
	Need bool
	// Spent tells that the process holds so much that it should do no other job.
	Spent  bool
	Fault  *wireFault
	Chart  *Chart
	Result *Result
	Lint   *linted
}

// linted is what Helm's lint found.
type linted struct{ Findings []render.HelmFinding }

// maxFrame bounds a message: an archive, or what all templates may render together as trees.
const maxFrame = 64 << 20

// CBOR holds strings that are not UTF-8 as they are, as a value from a Secret may be, and tells integers from
// other numbers; JSON does neither.
var (
	encoding = must(cbor.EncOptions{}.EncMode())
	// sorted is the same text for the same job.
	sorted   = must(cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode())
	decoding = must(cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail, UTF8: cbor.UTF8DecodeInvalid,
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 512, MaxArrayElements: 4 << 20, MaxMapPairs: 4 << 20,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var errTooLong = errors.New("worker: a message is over the limit")

// encode is a message ready to be sent: its length, and the message.
func encode(v any) ([]byte, error) {
	body, err := encoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if len(body) > maxFrame {
		return nil, errTooLong
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	return append(frame, body...), nil
}

// receive reads one message.
func receive(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return errTooLong
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := decoding.Unmarshal(body, v); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}
