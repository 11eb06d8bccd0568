"""The usual server: FastAPI and sentence-transformers, with the limits and routes of ours."""

from __future__ import annotations

import argparse
import base64
import threading
from typing import Annotated

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field
from sentence_transformers import SentenceTransformer

TEXTS = 2_048  # per request, as OpenAI's form has it here
WAITING = 512  # requests; more are refused


class Embeddings(BaseModel):
    input: Annotated[list[str], Field(min_length=1, max_length=TEXTS)]
    model: str
    encoding_format: str = "base64"


def application(folder: str) -> FastAPI:
    app = FastAPI()
    model = SentenceTransformer(folder, device="cpu")
    turn = threading.Lock()
    places = threading.Semaphore(WAITING)

    @app.get("/models")
    def models() -> dict[str, dict[str, list[str]]]:
        return {"peer": {"abilities": ["embed"]}}

    @app.post("/v1/embeddings")
    def embeddings(form: Embeddings) -> dict[str, object]:
        if not places.acquire(blocking=False):
            raise HTTPException(429, "too many requests wait")
        try:
            with turn:
                vectors = model.encode(form.input, batch_size=32, show_progress_bar=False)
        finally:
            places.release()
        written = [base64.b64encode(one.astype("<f4").tobytes()).decode() for one in vectors]
        data = [
            {"object": "embedding", "index": number, "embedding": one}
            for number, one in enumerate(written)
        ]
        return {"object": "list", "data": data, "model": form.model}

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    uvicorn.run(application(given.folder), port=given.port, log_level="warning")
