package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/internal/containernode"
)

// dnsName is the usual name of the service that resolves names; programs look
// for it.
const dnsName = "kube-dns"

const dnsPort = 53

// publishDNS makes the service by which pods reach CoreDNS. That runs beside the
// kubelet and not in a pod, so the endpoint is written by hand.
func publishDNS(ctx context.Context, client kubernetes.Interface) error {
	service := dnsService()
	_, err := client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service %s: %w", service.Name, err)
	}
	slice := dnsEndpoints()
	_, err = client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("endpoints of service %s: %w", service.Name, err)
	}
	return nil
}

func dnsService() *corev1.Service {
	port := func(name string, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: dnsPort, TargetPort: intstr.FromInt32(dnsPort)}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: dnsName, Namespace: metav1.NamespaceSystem},
		Spec: corev1.ServiceSpec{
			ClusterIP: containernode.DNSService.String(),
			Ports:     []corev1.ServicePort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
		},
	}
}

func dnsEndpoints() *discoveryv1.EndpointSlice {
	port := func(name string, protocol corev1.Protocol) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: new(name), Protocol: new(protocol), Port: new(int32(dnsPort))}
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: dnsName, Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{discoveryv1.LabelServiceName: dnsName},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{containernode.NodeAddress.String()}}},
		Ports:       []discoveryv1.EndpointPort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
	}
}
