package fidelity

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A watchPair is the same watch on both sides.
type watchPair struct {
	text         string
	memory, real *watching
}

// A watching collects the events of one watch.
type watching struct {
	reply reply // The refusal, if the watch was refused.

	mu     sync.Mutex
	events []event
	ended  bool
}

type event struct {
	Type   string
	Object map[string]any
}

// watch draws a watch and opens it on both sides.
func (s *script) watch(ctx context.Context) error {
	resource := s.resource()
	query := url.Values{"watch": {"true"}, "timeoutSeconds": {"600"}}
	if s.once(2) {
		query.Set("labelSelector", pick(s.drawer, "color=red", "!color"))
	}
	if s.once(4) {
		query.Set("fieldSelector", pick(s.drawer, "metadata.name=o1", "metadata.name!=o2"))
	}
	if s.once(2) {
		query.Set("allowWatchBookmarks", "true")
	}
	s.drawVersion(query)
	accept := pick(s.drawer, asJSON, asProtobuf+";stream=watch", "")
	c := call{method: "GET", path: s.collection(resource), query: query.Encode(), accept: accept, text: "watch"}
	s.freshen(ctx, c)
	p := &watchPair{text: fmt.Sprintf("watch: %s?%s", c.path, c.query)}
	var err error
	if p.memory, err = s.memory.watch(ctx, c); err != nil {
		return err
	}
	if p.real, err = s.real.watch(ctx, c); err != nil {
		return err
	}
	s.story = append(s.story, fmt.Sprintf("%s → %d", p.text, p.real.reply.Code))
	if diff := cmp.Diff(p.memory.reply, p.real.reply); diff != "" {
		return &difference{p.text, diff, s.story}
	}
	s.watches = append(s.watches, p)
	return nil
}

// drawVersion draws the version from which a watch begins. If it is the version of an object,
// each side inserts its own.
func (s *script) drawVersion(query url.Values) {
	switch s.IntN(8) {
	case 0, 1:
		query.Set("resourceVersion", "0")
	case 2, 3:
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", pick(s.drawer, "NotOlderThan", "NotOlderThan", "Exact", ""))
		if s.once(2) {
			query.Set("resourceVersion", "0")
		}
	case 4:
		query.Set("sendInitialEvents", "false")
		query.Set("resourceVersionMatch", "NotOlderThan")
	case 5:
		query.Set("resourceVersion", "x")
	case 6:
		if len(s.known) > 0 {
			query.Set("resourceVersion", versionOf(pick(s.drawer, s.known...)))
		}
	}
}

// versionOf stands for the resource version in which an object was last seen.
func versionOf(r ref) string { return "version-of:" + r.resource + "/" + r.name }

func (s *side) watch(ctx context.Context, c call) (*watching, error) {
	text, err := url.QueryUnescape(s.names.actual(c.query))
	if err != nil {
		return nil, err
	}
	for r := range s.seen {
		if mark := versionOf(r) + "&"; strings.Contains(text+"&", mark) {
			version, _ := inside(s.last(r), "metadata")["resourceVersion"].(string)
			c.query = strings.ReplaceAll(c.query, url.QueryEscape(versionOf(r)), version)
		}
	}
	req, err := http.NewRequestWithContext(ctx, c.method, s.base+c.path+"?"+s.names.actual(c.query), nil)
	if err != nil {
		return nil, err
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	w := &watching{reply: reply{Code: res.StatusCode, ContentType: res.Header.Get("Content-Type")}}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		w.ended = true
		w.reply, err = s.reply(c, res, data)
		return w, err
	}
	go w.read(res)
	return w, nil
}

// read collects events until the watch ends.
func (w *watching) read(res *http.Response) {
	defer func() { _ = res.Body.Close() }()
	next := textFrames(res.Body)
	if strings.Contains(w.reply.ContentType, "protobuf") {
		next = binaryFrames(res.Body)
	}
	for {
		kind, obj, err := next()
		w.mu.Lock()
		if err != nil {
			w.ended = true
			w.mu.Unlock()
			return
		}
		if kind != "BOOKMARK" || endOfInitialEvents(obj) {
			w.events = append(w.events, event{kind, obj})
		}
		w.mu.Unlock()
	}
}

func endOfInitialEvents(obj map[string]any) bool {
	return inside(inside(obj, "metadata"), "annotations")[metav1.InitialEventsAnnotationKey] == "true"
}

func textFrames(body io.Reader) func() (string, map[string]any, error) {
	decoder := json.NewDecoder(body)
	return func() (string, map[string]any, error) {
		var frame struct {
			Type   string
			Object any
		}
		if err := decoder.Decode(&frame); err != nil {
			return "", nil, err
		}
		obj, _ := integers(frame.Object).(map[string]any)
		return frame.Type, obj, nil
	}
}

func binaryFrames(body io.Reader) func() (string, map[string]any, error) {
	in := bufio.NewReader(body)
	return func() (string, map[string]any, error) {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return "", nil, err
		}
		data := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(in, data); err != nil {
			return "", nil, err
		}
		return binaryFrame(data)
	}
}

// protobufPrefix is the prefix of Kubernetes' protobuf.
const protobufPrefix = "k8s\x00"

func binaryFrame(data []byte) (string, map[string]any, error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal([]byte(strings.TrimPrefix(string(data), protobufPrefix))); err != nil {
		return "", nil, err
	}
	var frame metav1.WatchEvent
	if err := frame.Unmarshal(envelope.Raw); err != nil {
		return "", nil, err
	}
	v, err := readable(asProtobuf, frame.Object.Raw)
	if err != nil {
		return "", nil, err
	}
	obj, _ := v.(map[string]any)
	return frame.Type, obj, nil
}

func (w *watching) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}

// compareWatches waits until the watches have delivered all events, and compares these.
func (s *script) compareWatches() error {
	for _, p := range s.watches {
		for end := time.Now().Add(patience); p.real.count() != p.memory.count() && time.Now().Before(end); {
			time.Sleep(glance)
		}
	}
	for _, p := range s.watches {
		if diff := cmp.Diff(p.memory.told(s.memory.names), p.real.told(s.real.names)); diff != "" {
			return &difference{p.text, diff, s.story}
		}
	}
	return nil
}

// told are the events of a watch by object, in order. Events of different objects are not
// ordered, because the garbage collector may delete objects in any order.
func (w *watching) told(n *names) map[string][]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := map[string][]any{}
	for i, e := range w.events {
		if e.Type == "BOOKMARK" {
			told["bookmark"] = append(told["bookmark"], fields{"after": i, "object": unversioned(n.normal(e.Object))})
			continue
		}
		uid, _ := inside(e.Object, "metadata")["uid"].(string)
		at := n.comparable(uid)
		told[at] = append(told[at], fields{"type": e.Type, "object": unversioned(n.normal(e.Object))})
	}
	told["ended"] = []any{w.ended}
	return told
}

func unversioned(v any) any {
	if obj, ok := v.(map[string]any); ok {
		meta := inside(obj, "metadata")
		meta["resourceVersion"] = meta["resourceVersion"] != nil
	}
	return v
}
