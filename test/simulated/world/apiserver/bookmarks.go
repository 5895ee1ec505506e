package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// bookmarkEvery is how often a watch gets a bookmark, as from a real server's watch
// cache. The server has no timer for it: a bookmark is sent with the next write, and
// without writes it would say nothing new.
const bookmarkEvery = time.Minute

// remind sends the bookmarks that are due, and compacts. The caller holds the lock.
func (s *Server) remind() {
	now := time.Now()
	if now.Sub(s.reminded) < bookmarkEvery {
		return
	}
	s.reminded = now
	s.forget(now)
	for _, r := range registries().stores {
		for _, w := range s.tables[r.resource].watches {
			if w.predicate.AllowWatchBookmarks {
				w.push(watch.Bookmark, w.bookmark(false))
			}
		}
	}
}

// bookmark returns an object with nothing but the resource version that the watch has
// reached.
func (w *watcher) bookmark(endOfInitialEvents bool) runtime.Object {
	obj := w.table.store.newFunc()
	check(versioner.UpdateObject(obj, w.server.version))
	if endOfInitialEvents {
		check(storage.AnnotateInitialEventsEndBookmark(obj))
	}
	return obj
}
