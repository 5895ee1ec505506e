package virtual

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// newFrames returns what reads one event after the other, as it stands on the wire:
// protobuf events have their length in front, and JSON ones a line each.
func newFrames(resp *http.Response) func() ([]byte, error) {
	body := bufio.NewReader(resp.Body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		return func() ([]byte, error) { return readPrefixed(body) }
	}
	return func() ([]byte, error) { return body.ReadBytes('\n') }
}

const prefix = 4

func readPrefixed(body io.Reader) ([]byte, error) {
	head := make([]byte, prefix)
	if _, err := io.ReadFull(body, head); err != nil {
		return nil, err
	}
	event := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	_, err := io.ReadFull(body, event[prefix:])
	return event, err
}
