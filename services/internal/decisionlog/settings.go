package decisionlog

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Settings replace those of requests, field by field. A field may be replaced by its default,
// such as false, so the names of the fields are kept beside their values.
type Settings struct {
	values *jobpolicyv1.Settings
	given  []protoreflect.FieldDescriptor
}

// ParseSettings reads settings from JSON of jobpolicy.v1.Settings. They replace the fields that
// the text has; null stands for the default.
func ParseSettings(text string) (*Settings, error) {
	s := &Settings{values: &jobpolicyv1.Settings{}}
	if err := protojson.Unmarshal([]byte(text), s.values); err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, err
	}
	fields := s.values.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if keys[f.JSONName()] != nil || keys[f.TextName()] != nil {
			s.given = append(s.given, f)
		}
	}
	return s, nil
}

// in returns the request with these settings in the place of its own.
func (s *Settings) in(req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobRequest {
	req = proto.CloneOf(req)
	if req.Settings == nil {
		req.Settings = &jobpolicyv1.Settings{}
	}
	to, from := req.Settings.ProtoReflect(), proto.CloneOf(s.values).ProtoReflect()
	for _, f := range s.given {
		to.Clear(f)
		if from.Has(f) {
			to.Set(f, from.Get(f))
		}
	}
	return req
}
