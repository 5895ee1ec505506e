package virtual

import (
	"bufio"
	"encoding/binary"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// newFrames returns a function that reads the next event of a watch as bytes, in the form of
// the wire: protobuf events begin with their length, and a JSON event is a line.
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
