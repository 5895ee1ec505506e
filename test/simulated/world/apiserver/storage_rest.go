package apiserver

import (
	"context"

	"k8s.io/apiserver/pkg/storage"
)

// The methods of storage.Interface that neither read nor write objects. Here they have
// nothing to wait for or to measure.

// Stats implements storage.Interface.
func (r *store) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, nil }

// ReadinessCheck implements storage.Interface.
func (r *store) ReadinessCheck() error { return nil }

// RequestWatchProgress implements storage.Interface.
func (r *store) RequestWatchProgress(context.Context) error { return nil }

// GetCurrentResourceVersion implements storage.Interface.
func (r *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	s := callerFrom(ctx).server
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, nil
}

// EnableResourceSizeEstimation implements storage.Interface.
func (r *store) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision implements storage.Interface.
func (r *store) CompactRevision() int64 { return 0 }
