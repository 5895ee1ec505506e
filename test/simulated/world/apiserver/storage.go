package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// A store replaces etcd for the registry of one resource. All servers share it: the
// request's context says whose table it reads and writes.
type store struct {
	resource string
	prefix   string
	// kind is the external type of the stored objects.
	kind    schema.GroupVersionKind
	newFunc func() runtime.Object
	// uncached is true if a real server has no watch cache for the resource: then it reads
	// the storage instead, and some of its error messages differ.
	uncached bool
	// hasUID is true if a new object already has its UID.
	hasUID bool
}

var (
	_         storage.Interface = (*store)(nil)
	versioner                   = storage.APIObjectVersioner{}
)

func (r *store) key(namespace, name string) string {
	if namespace == "" {
		return r.prefix + "/" + name
	}
	return r.prefix + "/" + namespace + "/" + name
}

func (r *store) table(s *Server) *table { return s.tables[r.resource] }

// read returns the current version of a key.
func (r *store) read(s *Server, key string) (v *version, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.table(s).find(key), s.version
}

// Versioner implements storage.Interface.
func (r *store) Versioner() storage.Versioner { return versioner }

// Create implements storage.Interface. The UID that the registry drew at random
// is replaced.
func (r *store) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	if number, err := versioner.ObjectResourceVersion(obj); err == nil && number != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	c := callerFrom(ctx)
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.table(s).find(key) != nil {
		return storage.NewKeyExistsError(key, int64(s.version))
	}
	v, err := r.insert(c, key, obj)
	if err != nil {
		return err
	}
	return show(v.internal, out)
}

// insert stores a new object. The caller holds the lock.
func (r *store) insert(c *caller, key string, obj runtime.Object) (*version, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if !r.hasUID {
		m.SetUID(c.server.newUID(key))
	}
	v, err := r.freeze(key, obj)
	if err != nil {
		return nil, err
	}
	if r.resource == "pods" {
		if err := c.server.admitToQuota(m.GetNamespace(), m.GetName(), v.external); err != nil {
			return nil, err
		}
	}
	_, err = c.server.commit(c, r.table(c.server), nil, v)
	return v, err
}

// show copies a stored object to where the registry wants it. The copy is shallow: what it
// points to is shared, and never changed.
func show(obj, out runtime.Object) error {
	if out == nil {
		return nil
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj).Elem())
	return nil
}

// Get implements storage.Interface.
func (r *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	v, at := r.read(callerFrom(ctx).server, key)
	if err := r.notOlderThan(opts.ResourceVersion, at); err != nil {
		return err
	}
	if v != nil {
		return show(v.internal.DeepCopyObject(), out)
	}
	if !opts.IgnoreNotFound {
		return storage.NewKeyNotFoundError(key, 0)
	}
	return runtime.SetZeroValue(out)
}

// notOlderThan returns an error if the stored version is older than the requested one.
func (r *store) notOlderThan(resourceVersion string, at uint64) error {
	least, err := versioner.ParseResourceVersion(resourceVersion)
	switch {
	case err != nil && r.uncached:
		return errors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	case err != nil:
		return err
	case least <= at:
		return nil
	case r.uncached:
		return storage.NewTooLargeResourceVersionError(least, at, 0)
	}
	return storage.NewTooLargeResourceVersionError(least, at, 1)
}

// Delete implements storage.Interface.
func (r *store) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	c := callerFrom(ctx)
	for {
		v, _ := r.read(c.server, key)
		if v == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, v.internal); err != nil {
			return err
		}
		if err := validate(ctx, v.internal); err != nil {
			return err
		}
		ch, err := r.replace(c, v, nil)
		if err != nil {
			return err
		}
		if ch != nil {
			return show(ch.last.internal, out)
		}
	}
}

// replace commits the successor of a version. It does nothing if another write was faster.
func (r *store) replace(c *caller, previous, current *version) (*change, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	t := r.table(s)
	if t.find(previous.key) != previous {
		return nil, nil
	}
	return s.commit(c, t, previous, current)
}

// GuaranteedUpdate implements storage.Interface.
func (r *store) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object,
) error {
	c := callerFrom(ctx)
	for {
		v, _ := r.read(c.server, key)
		if v == nil {
			done, err := r.upsert(c, key, out, ignoreNotFound, preconditions, try)
			if done || err != nil {
				return err
			}
			continue
		}
		done, err := r.update(c, v, out, preconditions, try)
		if done || err != nil {
			return err
		}
	}
}

// upsert creates an object that was to be updated and does not exist, if that is allowed.
// It reports false if somebody else has created it meanwhile.
func (r *store) upsert(
	c *caller, key string, out runtime.Object, allowed bool, preconditions *storage.Preconditions, try storage.UpdateFunc,
) (bool, error) {
	if !allowed {
		return false, storage.NewKeyNotFoundError(key, 0)
	}
	zero := r.newFunc()
	if err := preconditions.Check(key, zero); err != nil {
		return false, err
	}
	obj, _, err := try(zero, storage.ResponseMeta{})
	if err != nil {
		return false, err
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.table(s).find(key) != nil {
		return false, nil
	}
	v, err := r.insert(c, key, obj)
	if err != nil {
		return false, err
	}
	return true, show(v.internal, out)
}

// update writes the successor of a version. It reports false if another write was faster.
// An update that changes nothing is not written.
func (r *store) update(
	c *caller, v *version, out runtime.Object, preconditions *storage.Preconditions, try storage.UpdateFunc,
) (bool, error) {
	if err := preconditions.Check(v.key, v.internal); err != nil {
		return false, err
	}
	obj, _, err := try(v.internal.DeepCopyObject(), storage.ResponseMeta{ResourceVersion: v.number})
	if err != nil {
		return false, err
	}
	data, err := r.encode(obj)
	if err != nil {
		return false, err
	}
	if bytes.Equal(data, v.bytes) {
		return true, show(v.internal, out)
	}
	next, err := r.thaw(v.key, data)
	if err != nil {
		return false, err
	}
	ch, err := r.replace(c, v, next)
	if ch == nil || err != nil {
		return false, err
	}
	return true, show(next.internal, out)
}
