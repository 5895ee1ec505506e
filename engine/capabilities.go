package engine

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Capabilities lists what this engine decides on.
func Capabilities() []jobpolicyv1.Capability {
	return []jobpolicyv1.Capability{
		jobpolicyv1.Capability_CAPABILITY_CAPABILITIES,
		jobpolicyv1.Capability_CAPABILITY_NON_INDEXED,
		jobpolicyv1.Capability_CAPABILITY_INDEXED,
		jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT,
		jobpolicyv1.Capability_CAPABILITY_ACTIVE_DEADLINE,
		jobpolicyv1.Capability_CAPABILITY_SUSPEND,
		jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT_PER_INDEX,
		jobpolicyv1.Capability_CAPABILITY_POD_FAILURE_POLICY,
		jobpolicyv1.Capability_CAPABILITY_SUCCESS_POLICY,
		jobpolicyv1.Capability_CAPABILITY_POD_REPLACEMENT_POLICY,
		jobpolicyv1.Capability_CAPABILITY_GANG_SCHEDULING,
		jobpolicyv1.Capability_CAPABILITY_CHECK_JOB_STATUS,
		jobpolicyv1.Capability_CAPABILITY_TTL_AFTER_FINISHED,
		jobpolicyv1.Capability_CAPABILITY_CRON_JOB,
		jobpolicyv1.Capability_CAPABILITY_PARTIAL_QUESTIONS,
	}
}

// unsupported refuses a spec with fields of a newer contract. What the rest of
// a request may hold beyond this contract can be left aside; a spec that is
// only half understood would be decided wrongly.
func unsupported(spec *jobpolicyv1.JobSpec) error {
	if spec == nil {
		return nil
	}
	return UnknownFields("spec", spec.ProtoReflect())
}

// UnknownFields returns an *UnsupportedError if m, or a message in it, has fields
// that this engine does not know. It looks in the order of the fields'
// declaration, so that the same spec is always refused for the same field. path
// is where m stands in its request; empty for the request itself.
func UnknownFields(path string, m protoreflect.Message) error {
	if len(m.GetUnknown()) > 0 {
		return &UnsupportedError{Field: path, Description: "has fields that this engine does not know; it needs a newer one"}
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() == nil || field.IsMap() || !m.Has(field) {
			continue
		}
		at := strings.TrimPrefix(path+"."+string(field.Name()), ".")
		if !field.IsList() {
			if err := UnknownFields(at, m.Get(field).Message()); err != nil {
				return err
			}
			continue
		}
		list := m.Get(field).List()
		for j := range list.Len() {
			if err := UnknownFields(fmt.Sprintf("%s[%d]", at, j), list.Get(j).Message()); err != nil {
				return err
			}
		}
	}
	return nil
}
