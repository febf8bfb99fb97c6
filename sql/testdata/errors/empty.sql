-- nothing here yet
;
