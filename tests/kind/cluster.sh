#!/bin/bash
# Starts a cluster of kind with one control plane of gateways, a service behind a gateway, a Redis, and the image of the companion.
# Prints what the pages call NS and GATEWAY, as lines for the environment.
set -euo pipefail
plane=$1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
exec 3>&1 >&2

kind create cluster --config - <<'END'
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{role: control-plane}, {role: worker}, {role: worker}]
END
skopeo copy --override-arch amd64 "oci:target/companion:$version" "docker-archive:target/companion.tar:registry.example.com/diana-companion:$version"
kind load image-archive target/companion.tar

kubectl create deployment redis --image=redis:7
kubectl expose deployment redis --port=6379
kubectl create deployment upstream --image=registry.k8s.io/e2e-test-images/agnhost:2.53 -- /agnhost netexec --http-port=8080
kubectl expose deployment upstream --port=8080

case $plane in
istio)
  namespace=istio-system
  charts=https://istio-release.storage.googleapis.com/charts
  for part in base istiod; do
    helm install "istio-$part" "$part" --repo "$charts" --version '~1.30.0' -n "$namespace" --create-namespace --wait \
      --set global.defaultPodDisruptionBudget.enabled=false
  done
  helm install istio-ingressgateway gateway --repo "$charts" --version '~1.30.0' -n "$namespace" --set service.type=NodePort --wait
  kubectl apply -f tests/kind/istio.yaml
  service="-n $namespace istio-ingressgateway"
  ;;
envoy-gateway)
  namespace=default
  helm install eg oci://docker.io/envoyproxy/gateway-helm --version v1.9.0 -n envoy-gateway-system --create-namespace --wait \
    --set config.envoyGateway.extensionApis.enableEnvoyPatchPolicy=true
  kubectl apply -f tests/kind/envoy-gateway.yaml
  service="-n envoy-gateway-system -l gateway.envoyproxy.io/owning-gateway-name=eg"
  # shellcheck disable=SC2086 # words
  until kubectl get deployment $service -o name | grep .; do sleep 1; done
  # shellcheck disable=SC2086
  kubectl wait $service --for=condition=available deployment --timeout=10m
  ;;
esac
kubectl wait --for=condition=available deployment --all --timeout=10m

# shellcheck disable=SC2086 # words
port=$(kubectl get service $service -o json | jq -r '[.items[]?, .][0].spec.ports[] | select(.port == 80).nodePort')
node=$(kubectl get node kind-worker -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
curl --retry 60 --retry-all-errors --retry-delay 2 -fsS "http://$node:$port/hello"
echo "NS=$namespace" >&3
echo "GATEWAY=$node:$port" >&3
