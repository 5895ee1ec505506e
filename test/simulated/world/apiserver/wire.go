package apiserver

import (
	"bytes"
	"context"
	stderrors "errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// requestInfo reads what a request is about from its path.
var requestInfo = &request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// A transport is the server as one of its clients sees it.
type transport struct {
	server *Server
	by     string
}

// Transport connects the client by to the server with the real wire formats: JSON and
// Kubernetes protobuf, lists, watches, bookmarks.
func (s *Server) Transport(by string) http.RoundTripper { return &transport{s, by} }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := requestInfo.NewRequestInfo(req)
	if err != nil {
		return nil, err
	}
	ctx = audit.WithAuditContext(request.WithRequestInfo(request.WithReceivedTimestamp(ctx, time.Now()), info))
	ctx = withCaller(ctx, &caller{server: t.server, by: t.by, verb: info.Verb, subresource: info.Subresource})
	if info.Verb == "watch" {
		return t.server.stream(req, ctx, t.by)
	}
	req = ofServer(req, ctx)
	if t.server.fieldManager != nil {
		req.Header = req.Header.Clone()
		req.Header.Set("User-Agent", t.server.fieldManager(t.by)) // By it, handlers name the field manager.
	}
	return answer(req)
}

// answer serves a request that is not a watch, in the client's goroutine.
func answer(req *http.Request) (_ *http.Response, err error) {
	defer recoverValidation(&err)
	w := &response{header: http.Header{}}
	handle(w, req)
	return w.result(req), nil
}

// errBroken is the error that a client gets if the server panics at its request.
var errBroken = stderrors.New("stream error: INTERNAL_ERROR; received from peer")

// recoverValidation breaks the connection where upstream's validation panics, as a
// real server does (of a CronJob whose Jobs are Indexed and have a success policy,
// but no completions). Any other panic is a defect of ours.
func recoverValidation(err *error) {
	reason := recover()
	if reason == nil {
		return
	}
	if text, ok := reason.(string); !ok || !strings.Contains(text, "k8s.io/kubernetes/pkg/apis/batch/validation.") {
		panic(reason)
	}
	*err = errBroken
}

// ofServer returns the request as the server gets it.
func ofServer(req *http.Request, ctx context.Context) *http.Request {
	req = req.WithContext(ctx)
	if req.Body == nil {
		req.Body = http.NoBody
	}
	return req
}

var handle = filters.WithWarningRecorder(http.HandlerFunc(dispatch)).ServeHTTP

// dispatch finds the handler of a request.
func dispatch(w http.ResponseWriter, req *http.Request) {
	info, _ := request.RequestInfoFrom(req.Context())
	at := place{info.APIGroup, info.APIVersion, info.Resource, info.Subresource}
	endpoints := registries().endpoints
	if callerFrom(req.Context()).server.fieldManager != nil {
		endpoints = endpointsWithFields()
	}
	e, served := endpoints[at]
	if !served {
		refuse(w, req, http.StatusNotFound, at)
		return
	}
	serve, can := e.handlers[info.Verb]
	if !can {
		refuse(w, req, http.StatusMethodNotAllowed, at)
		return
	}
	serve()(w, req)
}

// refuse answers as the router of a real server does.
func refuse(w http.ResponseWriter, req *http.Request, code int, at place) {
	version := schema.GroupVersion{Group: at.group, Version: at.version}
	if !legacyscheme.Scheme.IsVersionRegistered(version) {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	err := errors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
	responsewriters.ErrorNegotiated(err, legacyscheme.Codecs, version, w, req)
}

// A response collects a handler's answer (http.ResponseWriter).
type response struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(data)
}

func (w *response) result(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return newResponse(req, w.code, w.header, io.NopCloser(bytes.NewReader(w.body.Bytes())), int64(w.body.Len()))
}

func newResponse(req *http.Request, code int, header http.Header, body io.ReadCloser, length int64) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: body, ContentLength: length, Request: req,
	}
}
