a :: Idle;
// x
a -> Discard;