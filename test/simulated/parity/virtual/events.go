package virtual

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// nameEvent makes the name of a new event unique. client-go names events by the nanosecond,
// and in a bubble many things happen in the same one.
func (l *link) nameEvent(r *http.Request) error {
	if r.Method != http.MethodPost || path.Base(r.URL.Path) != "events" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return err
	}
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
	if err != nil {
		return err
	}
	event, ok := object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("an event was expected: %T", object)
	}
	event.Name = fmt.Sprintf("%s.%d", event.Name, l.events.Add(1))
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), r.Header.Get("Content-Type"))
	if body, err = runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), event); err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
