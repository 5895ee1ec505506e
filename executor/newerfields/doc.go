// Package newerfields keeps the fields of objects that this program was compiled without.
//
// The API server may be newer than the Kubernetes types of this program. Kubernetes' decoder drops
// each field that its types do not have. So a program that makes a pod of a Job's template, or writes
// an object back that it has read, would lose these fields.
//
// Serializer decodes objects as before, and also keeps their unknown fields: in the bytes in which
// they came, without the known fields around them. Pod and Job hand those of a template to what is
// made of it. When an object is encoded, they are put back where they were. In the usual case
// there are none, and nothing is kept.
//
// The unknown fields stay with their object, whoever copies it: in its metadata, as the text of
// selfLink. The API server has not set that field since Kubernetes v1.20. Serializer never sends the text.
package newerfields
