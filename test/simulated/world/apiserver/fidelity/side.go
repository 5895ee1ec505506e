package fidelity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// A side is one of the two servers, and what its answers have shown.
type side struct {
	name   string
	client *http.Client
	base   string

	names *names
	// seen are the versions of each object that answers have shown, oldest first.
	seen map[ref][]map[string]any
}

func newSide(name string, client *http.Client, base string) *side {
	return &side{name: name, client: client, base: base, names: newNames(), seen: map[ref][]map[string]any{}}
}

// A ref is an object as the script knows it. Its name may be a token, for a name
// that the server has generated.
type ref struct{ resource, name string }

// A call is one request, the same for both sides except for values from their own answers.
type call struct {
	method, path        string
	query               string
	contentType, accept string
	body                func(*side) []byte
	// about is the object that the path names, and that the answer shows.
	about ref
	text  string // What the call does, for the story.
	// aside is true for calls while a server may still change objects by itself: versions in
	// the answers are not counted.
	aside bool
}

// A reply is what a server answers, made comparable.
type reply struct {
	Code        int
	ContentType string
	Warnings    []string
	Body        any
}

func (s *side) do(ctx context.Context, c call) (reply, error) {
	var body io.Reader
	if c.body != nil {
		data := c.body(s)
		if c.contentType == asProtobuf {
			data, c.contentType = compact(data)
		}
		body = bytes.NewReader(data)
	}
	url := s.base + s.names.actual(c.path)
	if c.query != "" {
		url += "?" + s.names.actual(c.query)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, url, body)
	if err != nil {
		return reply{}, err
	}
	if c.contentType != "" {
		req.Header.Set("Content-Type", c.contentType)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	return s.reply(c, res, data)
}

func (s *side) reply(c call, res *http.Response, data []byte) (reply, error) {
	r := reply{Code: res.StatusCode, ContentType: res.Header.Get("Content-Type")}
	for _, w := range res.Header.Values("Warning") {
		r.Warnings = append(r.Warnings, s.names.comparable(w))
	}
	body, err := readable(r.ContentType, data)
	if err != nil {
		return r, fmt.Errorf("%s answers %q: %w", s.name, data, err)
	}
	if obj, ok := body.(map[string]any); ok {
		s.names.learn(obj, c.aside)
		s.remember(s.shown(c, r.Code, obj), obj)
	}
	r.Body = s.names.normal(body)
	return r, nil
}

// shown returns the object that an answer shows. A creation's name is known only
// now.
func (s *side) shown(c call, code int, obj map[string]any) ref {
	if c.method != http.MethodPost || code != http.StatusCreated || strings.Contains(c.query, "dryRun") || obj["kind"] == "Status" {
		return c.about
	}
	name, _ := inside(obj, "metadata")["name"].(string)
	return ref{c.path[strings.LastIndex(c.path, "/")+1:], s.names.comparable(name)}
}

// remember keeps the version of an object that an answer shows.
func (s *side) remember(about ref, obj map[string]any) {
	if about.name == "" || obj["kind"] != kinds[about.resource].kind {
		return
	}
	s.seen[about] = append(s.seen[about], obj)
}

// last returns a copy of what was last seen of an object.
func (s *side) last(about ref) map[string]any { return s.version(about, len(s.seen[about])-1) }

func (s *side) version(about ref, i int) map[string]any {
	versions := s.seen[about]
	if i < 0 || i >= len(versions) {
		return map[string]any{"metadata": map[string]any{"name": s.names.actual(about.name)}}
	}
	return runtime.DeepCopyJSON(versions[i])
}

// compact turns JSON into protobuf, if it names its kind.
func compact(data []byte) ([]byte, string) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return data, asJSON
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &b); err != nil {
		return data, asJSON
	}
	return b.Bytes(), asProtobuf
}

// readable turns a body of any media type into JSON.
func readable(contentType string, data []byte) (any, error) {
	if strings.HasPrefix(contentType, runtime.ContentTypeProtobuf) {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		if data, err = json.Marshal(obj); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 || !strings.Contains(contentType, "json") && !strings.Contains(contentType, "protobuf") {
		return string(data), nil
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return integers(v), nil
}

// integers makes whole numbers int64, as DeepCopyJSON wants them.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = integers(one)
		}
	case []any:
		for i, one := range v {
			v[i] = integers(one)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}
