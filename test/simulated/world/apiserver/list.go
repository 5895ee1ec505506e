package apiserver

import (
	"context"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// A real server's messages about versions that it no longer has (etcd3/errors.go).
const (
	listTooOld     = "The resourceVersion for the provided list is too old."
	continueTooOld = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
		"objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
)

// A reading is the content of a list.
type reading struct {
	versions []*version // That match, up to the limit.
	at       uint64     // The version of the list.
	lastKey  string
	more     bool
	left     int64 // How many keys there were from the beginning of this page on.
}

// GetList implements storage.Interface.
func (r *store) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	prefix, err := storage.PrepareKey(r.prefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	seen, err := r.readList(callerFrom(ctx).server, prefix, opts)
	if err != nil {
		return err
	}
	if err := fill(list, seen.versions); err != nil {
		return err
	}
	next, left, err := storage.PrepareContinueToken(seen.lastKey, prefix, int64(seen.at), seen.left, seen.more, opts)
	if err != nil {
		return err
	}
	return versioner.UpdateList(list, seen.at, next, left)
}

func (r *store) readList(s *Server, prefix string, opts storage.ListOptions) (*reading, error) {
	exact, from, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := &reading{at: s.version}
	if exact > 0 {
		if seen.at, err = s.past(uint64(exact), prefix, from, opts); err != nil {
			return nil, err
		}
	} else if err := r.notOlderThan(opts.ResourceVersion, s.version); err != nil {
		return nil, err
	}
	versions := r.table(s).asOf(seen.at, prefix)
	if from != "" {
		versions = versions[sort.Search(len(versions), func(i int) bool { return versions[i].key >= from }):]
	}
	if !opts.Recursive {
		versions = only(versions, prefix)
	}
	if opts.ResourceVersion == "0" && opts.ResourceVersionMatch != metav1.ResourceVersionMatchExact && !r.uncached {
		opts.Predicate.Limit = 0 // A watch cache ignores the limit.
	}
	return seen, seen.choose(versions, opts)
}

// past checks whether the server can still list a past version.
func (s *Server) past(number uint64, prefix, from string, opts storage.ListOptions) (uint64, error) {
	switch {
	case number > s.version:
		return 0, storage.NewTooLargeResourceVersionError(number, s.version, 0)
	case number >= s.compacted:
		return number, nil
	case opts.Predicate.Continue == "":
		return 0, errors.NewResourceExpired(listTooOld)
	}
	token, err := storage.EncodeContinue(from, prefix, -1)
	if err != nil {
		return 0, err
	}
	expired := errors.NewResourceExpired(continueTooOld)
	expired.ErrStatus.Continue = token
	return 0, expired
}

// only keeps the version with exactly this key.
func only(versions []*version, key string) []*version {
	for i, v := range versions {
		if v.key == key {
			return versions[i : i+1]
		}
	}
	return nil
}

// choose keeps the versions that match, up to the limit.
func (seen *reading) choose(versions []*version, opts storage.ListOptions) error {
	limit := opts.Predicate.Limit
	seen.left = int64(len(versions))
	everything := opts.Predicate.Empty()
	for i, v := range versions {
		if !everything {
			matches, err := opts.Predicate.Matches(v.internal)
			if err != nil {
				return err
			}
			if !matches {
				continue
			}
		}
		seen.versions, seen.lastKey = append(seen.versions, v), v.key
		if limit > 0 && int64(len(seen.versions)) == limit {
			seen.more = i < len(versions)-1
			return nil
		}
	}
	return nil
}

// fill puts the objects into the list. The copies are shallow: what they point to is shared.
func fill(list runtime.Object, versions []*version) error {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items, err := conversion.EnforcePtr(pointer)
	if err != nil {
		return err
	}
	items.Set(reflect.MakeSlice(items.Type(), len(versions), len(versions)))
	for i, v := range versions {
		items.Index(i).Set(reflect.ValueOf(v.internal).Elem())
	}
	return nil
}
