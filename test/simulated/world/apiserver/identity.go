package apiserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/fnv"
	"strconv"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
)

// UIDs and generated names depend only on the object's key and on how many were drawn
// for this key before. So they do not depend on the order in which requests about
// different objects arrive.

// longestRoot is how many characters of generateName are used: names have at most 63
// characters, and 5 of them are generated (upstream's names.SimpleNameGenerator).
const (
	longestRoot   = 63 - suffixLength
	suffixLength  = 5
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// draw returns another number for each root, and each time. The caller holds the lock.
func (s *Server) draw(root string) uint64 {
	n := s.ordinals[root]
	s.ordinals[root] = n + 1
	h := fnv.New64a()
	_, _ = h.Write([]byte(root))
	_, _ = h.Write([]byte("#" + strconv.FormatUint(n, 10)))
	return scatter(h.Sum64())
}

// scatter spreads what FNV leaves close together (the finalizer of SplitMix64).
func scatter(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// newUID returns the UID of the next object with this key. The caller holds the
// lock.
func (s *Server) newUID(key string) types.UID {
	low := s.draw("uid:" + key)
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], scatter(low+1))
	binary.LittleEndian.PutUint64(raw[8:], low)
	// Version 4, as upstream's. Reading 16 bytes from 16 cannot fail.
	return types.UID(uuid.Must(uuid.NewRandomFromReader(bytes.NewReader(raw[:]))).String())
}

// generateName returns a name that nobody has.
func (s *Server) generateName(t *table, namespace, root string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		name := s.drawName(t.store.resource+"/"+namespace+"/", root)
		if t.find(t.store.key(namespace, name)) == nil {
			return name
		}
	}
}

func (s *Server) drawName(place, root string) string {
	if len(root) > longestRoot {
		root = root[:longestRoot]
	}
	number := s.draw("name:" + place + root)
	var suffix [suffixLength]byte
	for i := range suffix {
		suffix[i] = suffixLetters[number%uint64(len(suffixLetters))]
		number /= uint64(len(suffixLetters))
	}
	return root + string(suffix[:])
}

// earlyUID is a strategy that needs the UID before the object is stored: a Job's
// selector is made of it. For all others the storage draws it.
type earlyUID struct {
	rest.RESTCreateStrategy
	rest.DeclarativeValidationStrategy // Without it, BeforeCreate skips the declarative rules.
	store                              *store
}

// PrepareForCreate implements rest.RESTCreateStrategy. The registry has drawn a
// UID at random.
func (e earlyUID) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if m, err := meta.Accessor(obj); err == nil {
		s := callerFrom(ctx).server
		s.mu.Lock()
		m.SetUID(s.newUID(e.store.key(m.GetNamespace(), m.GetName())))
		s.mu.Unlock()
	}
	e.RESTCreateStrategy.PrepareForCreate(ctx, obj)
}
