address.restore();
address.go();
