package apiserver

import (
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A table holds the objects of one resource, sorted by key, and all their changes.
type table struct {
	store   *store
	current []*version
	log     []*change
	watches []*watcher // In the order in which they began.
}

// A change is a write as the watches see it. A deletion has no current version, and a
// creation no previous one.
type change struct {
	number            uint64
	current, previous *version
	// last is the previous version with the change's number: a watch shows it for an
	// object that is gone, or that it no longer selects. It is made when it is needed.
	last *version
}

func newTable(r *store) *table { return &table{store: r} }

func compareKeys(v *version, key string) int { return strings.Compare(v.key, key) }

func (t *table) find(key string) *version {
	at, found := slices.BinarySearchFunc(t.current, key, compareKeys)
	if !found {
		return nil
	}
	return t.current[at]
}

// under returns the versions whose keys begin with the prefix.
func (t *table) under(prefix string) []*version {
	from, _ := slices.BinarySearchFunc(t.current, prefix, compareKeys)
	rest := t.current[from:]
	n := sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i].key, prefix) })
	return rest[:n:n]
}

// in returns the versions of a namespace, or all if it is empty.
func (t *table) in(namespace string) []*version {
	if namespace == "" {
		return t.current
	}
	return t.under(t.store.prefix + "/" + namespace + "/")
}

func (t *table) put(v *version) {
	at, found := slices.BinarySearchFunc(t.current, v.key, compareKeys)
	if found {
		t.current[at] = v
		return
	}
	t.current = slices.Insert(t.current, at, v)
}

func (t *table) remove(key string) {
	if at, found := slices.BinarySearchFunc(t.current, key, compareKeys); found {
		t.current = slices.Delete(t.current, at, at+1)
	}
}

// since returns the changes after the version.
func (t *table) since(number uint64) []*change {
	at := sort.Search(len(t.log), func(i int) bool { return t.log[i].number > number })
	return t.log[at:]
}

// asOf returns the versions under the prefix as they were at a number.
func (t *table) asOf(number uint64, prefix string) []*version {
	changes := t.since(number)
	if len(changes) == 0 {
		return t.under(prefix)
	}
	then := &table{current: slices.Clone(t.under(prefix))}
	for _, c := range slices.Backward(changes) {
		switch {
		case c.previous == nil:
			then.remove(c.current.key)
		case strings.HasPrefix(c.previous.key, prefix):
			then.put(c.previous)
		}
	}
	return then.current
}

// commit stores a change and passes it to the watches and the observer. One of the versions
// may be nil, and the current one gets its number here. The caller holds the lock.
func (s *Server) commit(c *caller, t *table, previous, current *version) (*change, error) {
	number := s.version + 1
	if current != nil {
		if err := current.setNumber(number); err != nil {
			return nil, err
		}
	}
	s.version = number
	ch := &change{number: number, current: current, previous: previous}
	if current == nil {
		t.remove(previous.key)
		ch.last = previous.renumbered(number)
	} else {
		t.put(current)
	}
	t.log = append(t.log, ch)
	s.tell(c, t, ch)
	for _, w := range t.watches {
		w.see(ch)
	}
	s.remind()
	return ch, nil
}

// tell reports the write to the observer.
func (s *Server) tell(c *caller, t *table, ch *change) {
	if s.observe == nil {
		return
	}
	w := Write{
		Time: time.Now(), ResourceVersion: ch.number, By: c.by, Verb: c.verb,
		Resource: t.store.resource, Subresource: c.subresource,
	}
	one := ch.current
	if ch.previous != nil {
		one, w.Old = ch.previous, ch.previous.external
	}
	if ch.current != nil {
		w.New = ch.current.external
	}
	m := one.meta()
	w.Key, w.UID = types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, m.GetUID()
	s.observe(w)
}

// seenLast returns the previous version with the change's number.
func (ch *change) seenLast() *version {
	if ch.last == nil {
		ch.last = ch.previous.renumbered(ch.number)
	}
	return ch.last
}
