  const button = document.getElementById("same");
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    document.getElementById("rows").insertAdjacentHTML("beforeend", await part("same"));
    button.hidden = true;
  });
